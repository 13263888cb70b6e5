"""The executables for options, and the conversion of a call's arguments for them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from pcbatch.errors import UsageError
from pcbatch.function.arguments import Arguments
from pcbatch.ir.analysis.parallel_call_groups import groups, without_forks
from pcbatch.ir.machine import Piece, Program
from pcbatch.ir.types import leaves
from pcbatch.optimize.machine.compaction import DEFAULT, DETERMINISTIC, PAIRED, Compaction
from pcbatch.optimize.machine.nodes import Nodes
from pcbatch.options import ON_THE_FLY, Options
from pcbatch.runtime.adjoint.custom_gradient import run_through
from pcbatch.runtime.adjoint.reverse import Forks, Reverse, Settings
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.costs.device import CPU, device_of
from pcbatch.runtime.costs.estimate import (
    Obstacle,
    choice,
    is_of_numbers,
    loss,
    mixture,
    obstacle,
    parts_of,
    signature_of,
)
from pcbatch.runtime.llvm.gradients import natively
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.mixed import MixedProgram
from pcbatch.runtime.llvm.on_gpu import KernelProgram
from pcbatch.runtime.llvm.program import LlvmProgram
from pcbatch.runtime.llvm.taped_regions import NativeTapedRegions
from pcbatch.runtime.machine.forked import IN_GRAPH, ForkedMachine
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.pool_sizing import FeedbackHistory
from pcbatch.runtime.store import cache_session
from pcbatch.runtime.strategies.executable import Executable, rooms_of
from pcbatch.runtime.strategies.local import LocalMachine
from pcbatch.runtime.strategies.on_the_fly import OnTheFly
from pcbatch.runtime.strategies.reference import ReferenceMachine
from pcbatch.runtime.strategies.straight_line import StraightLine, is_straight

Parts = Callable[[Program, Piece], Sequence[tuple[Piece, Signature]]]
"""The functions that a piece is made of."""


def _whole(program: Program, piece: Piece) -> Sequence[tuple[Piece, Signature]]:
    return [(piece, signature_of(program, piece))]


def make_executable(
    program: Program,
    options: Options,
    digest: Callable[[], str],
    traces: dict[Any, Any] | None = None,
    lessons: FeedbackHistory | None = None,
    nodes: Callable[[], Nodes] | None = None,
) -> Executable:
    """Make the executable of a program, of this `digest`, under the options; it learns from runs under all others.

    It is found out by traces of pieces, which are added to `traces`: see `Pieces.tracing_once`. `nodes` gives what
    batching on the fly makes nodes of.
    """
    if options.backend == "reference":
        return ReferenceMachine(
            program, backend_named(options.backend), max_depth=options.max_depth, max_steps=options.max_steps
        )
    backend = backend_named(options.backend)
    jit = options.jit is True
    with backend.tracing_once(traces, jit):
        if jit:
            taken_apart = options.form != "lockstep" and options.strategy == "pc"
            _trace_ahead(program, backend, parts_of if taken_apart else _whole)
        called = called_within(program, backend)
        limits = {"max_depth": options.max_depth, "max_steps": options.max_steps}
        if options.strategy in ON_THE_FLY:
            assert nodes is not None, f"there are no nodes for strategy={options.strategy!r}"
            return OnTheFly(program, nodes(), backend, options.strategy, **limits)
        if options.strategy != "pc":
            return LocalMachine(
                program,
                backend,
                compiled=options.strategy == "hybrid" and not called,
                **limits,
            )
        if called and options.form == "native":
            raise UsageError("PCB534", f"{program.name} cannot run in the native form: {_CALLS.format(called[0])}")
        if called:
            machine = _machine(program, backend, replace(options, jit=False), lambda: None)(max_lanes=options.max_lanes)
            return machine.because(_CALLS.format(called[0]))
        stored = functools.cache(lambda: _stored_as(program, options, digest()))
        tracing = functools.partial(backend.tracing_once, traces, jit)
        executable = _executable(program, backend, options, stored, lessons or FeedbackHistory(), tracing)
        if cache_session.current() is not None:
            stored()  # now, by the traces that what it costs was found by
    return executable


def _trace_ahead(program: Program, backend: Backend, parts: Parts = _whole) -> None:
    """Trace all pieces, in some parts, one after the other."""
    pieces = [(item, block.label) for block in program.blocks for item in block.body if isinstance(item, Piece)]
    found = [(*part, label) for piece, label in pieces for part in parts(program, piece)]
    if found:
        backend.trace_ahead(found)


_CALLS = "a piece of it calls `{}`, and a run of that grows, as no compiled program can"
SEQUEL = 64
"""Number of examples given up by forks that are run at a time."""


def _executable(
    program: Program,
    backend: Backend,
    options: Options,
    digest: Callable[[], str | None],
    lessons: FeedbackHistory,
    tracing: Callable[[], AbstractContextManager[None]],
) -> Machine | ForkedMachine | LlvmProgram | MixedProgram | StraightLine:
    """The machine, or the straight line or native program that it is better run as, or is to be."""
    # What runs straight runs for all examples, at once; chunks are a matter of the machine's.
    at_once = _of_trips(options) is None and options.max_lanes is None and not options.deterministic
    straight = options.form == "auto" and is_straight(program) and at_once
    forked = program if groups(program) else None
    program = without_forks(program)
    chosen = choice(program, backend) if options.jit == "auto" and straight else None
    jit = bool(options.jit) if chosen is None else chosen.jit
    make = _machine(program, backend, replace(options, jit=jit), digest)
    machine = make(max_lanes=options.max_lanes)
    if forked is not None and options.may_fork:
        learned = lessons.of(tuple(group.block for group in groups(forked)))
        return ForkedMachine(forked, machine, make(max_lanes=SEQUEL), learned=learned, least=CPU.least_bytes)
    if straight:
        is_native = options.jit is True and backend.place() != "GPU" and is_of_numbers(program)
        if is_native and loss(program, machine.legs.loop.row_costs) is None:
            with contextlib.suppress(UnsupportedError):
                return LlvmProgram(machine)
        form = f"straight, by {'XLA' if jit else 'kernels of TensorFlow'}"
        return StraightLine(machine, form if chosen is None else f"{form}: {chosen.why}")
    if options.form == "lockstep":
        return machine
    if options.form == "auto":
        why = _of_options(options, backend)
        if why is not None:
            return machine.because(why)
        why = loss(program, machine.legs.loop.row_costs)
        if why is not None:
            return _mixed(machine, why, options, tracing)
    if backend.place() == "GPU" and backend.handlers.kernels_on() is None:
        found = Obstacle(_WITHOUT_KERNELS)
    else:
        try:
            return KernelProgram(machine) if backend.place() == "GPU" else LlvmProgram(machine)
        except UnsupportedError as error:
            found = obstacle(program, backend) or Obstacle(f"no native code is made of {error}")
    if options.form == "native":
        raise UsageError("PCB534", f"{program.name} cannot run in the native form: {found.why}", found.span)
    return _mixed(machine, found.why, options, tracing)


def _machine(
    program: Program, backend: Backend, options: Options, digest: Callable[[], str | None]
) -> partial[Machine]:
    """The machine that runs `program` in lockstep, but for how many lanes it has at most."""
    return partial(
        Machine,
        program,
        backend,
        schedule=options.schedule,
        jit=bool(options.jit),
        max_depth=options.max_depth,
        max_steps=options.max_steps,
        compaction=_compaction(options, backend, PAIRED),
        trace=options.trace,
        digest=digest,
    )


def exportable(program: Program, options: Options, max_depth: int | None) -> Machine | StraightLine:
    """Make an executable that is one compiled program, whatever form runs here; with stacks for so many live calls.

    It is for the device that the backend is `targeting`.
    """
    backend, program = backend_named("tensorflow"), without_forks(program)
    plain = replace(options, jit=True, trace=0, max_depth=max_depth)
    machine = _machine(program, backend, plain, lambda: None)()
    straight = is_straight(program) and options.schedule == "auto" and not options.deterministic
    return StraightLine(machine, "straight") if straight else machine


def called_within(program: Program, backend: Backend) -> list[str]:
    """The names of the batched functions that pieces of `program` call as operations."""
    found: list[str] = []
    for block in program.blocks:
        with backend.scope(block.label):  # what is traced here may be what runs
            pieces = [item for item in block.body if isinstance(item, Piece)]
            for part, types in (each for piece in pieces for each in parts_of(program, piece)):
                found += backend.facts(part, types.reads, types.shared).called
    return found


def _compaction(options: Options, backend: Backend, usual: Compaction) -> Compaction:
    """Return the rule by which blocks run on gathered lanes: in pairs of chunks only where another loop is cheap."""
    rule, device = DETERMINISTIC if options.deterministic else usual, device_of(backend.place())
    return replace(rule, device=device, pairs=rule.pairs and not device.trips_together)


def _mixed(
    machine: Machine, why: str, options: Options, tracing: Callable[[], AbstractContextManager[None]]
) -> Machine | MixedProgram:
    """Make the executable of a program that, for this reason, is not native as a whole: cheap blocks may be."""
    program, backend, costs = machine.program, machine.backend, machine.legs.loop.row_costs
    if options.max_lanes is not None or (backend.handlers.version() is None and backend.handlers.kernels_on() is None):
        return machine.because(why)
    lockstep = mixture(program, backend, costs)
    if lockstep is None:
        return machine.because(why)
    left = loss(program, costs, lockstep)  # what is expensive may be native, as it runs seldom
    found = None if left else obstacle(program, backend)
    return MixedProgram(machine, lockstep, left or (found.why if found else why), tracing)


def _stored_as(program: Program, options: Options, digest: str) -> str | None:
    """A digest of the program as it is traced, and of the options that it runs under; None where there is none."""
    backend = backend_named(options.backend)
    found, known = [digest, repr(replace(options.of_programs, name=None))], dict[Piece, str]()
    for piece in (item for block in program.blocks for item in block.body if isinstance(item, Piece)):
        for part, types in parts_of(program, piece):
            each = known[part] if part in known else backend.described(part, types)
            if each is None:
                return None
            known[part] = each
            found.append(each)
        found += [repr((step.reads, step.writes, step.sites)) for step in piece.steps]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _of_options(options: Options, backend: Backend) -> str | None:
    """Return the reason for lockstep in the options, or in the machine; None where both leave it open."""
    if not options.jit:
        return "jit=False"
    why = _of_trips(options)
    if why is None and backend.place() == "GPU":
        why = (
            _WITHOUT_KERNELS
            if backend.handlers.kernels_on() is None
            else "max_lanes is for lanes in lockstep"
            if options.max_lanes
            else None
        )
    return why


_WITHOUT_KERNELS = "XLA takes no kernels of pcbatch's on this GPU"


def _of_trips(options: Options) -> str | None:
    """Return the reason for the machine's trips in the options; None where they leave it open."""
    if options.schedule != "auto":
        return f"schedule={options.schedule!r}"
    return "trips are to be recorded" if options.trace else None


def make_reverse(
    program: Program, options: Options, executable: Executable, digest: Callable[[], str] | None = None
) -> Reverse:
    """Reverse mode of a program, of this `digest`, that `executable` runs plainly.

    What is taped runs in lockstep there, whatever the options are; calls are forked where plain runs fork them. Where
    plain runs are native, gradients are, too, if they can be.
    """
    forks = None
    plain = program
    stored = functools.cache(lambda: None if digest is None else _stored_as(plain, options, digest()))
    if cache_session.current() is not None:
        stored()
    if isinstance(executable, ForkedMachine):
        pools, program = executable.pools, executable.program
        forks = Forks(pools.learned, pools.limit, pools.least, partial(executable.because, IN_GRAPH))
    else:
        program = without_forks(program)
    backend = backend_named(options.backend)
    mixes = options.form == "auto" and options.max_lanes is None and _of_options(options, backend) is None
    called = called_within(program, backend)
    mixes = mixes and backend.handlers.version() is not None and not called
    is_native = isinstance(executable, LlvmProgram) and backend.place() == "CPU" and not is_straight(program)
    settings = Settings(
        schedule="auto" if options.schedule == "switch" else options.schedule,
        jit=bool(options.jit) and not called,
        max_depth=options.max_depth,
        max_steps=options.max_steps,
        compaction=_compaction(options, backend, DEFAULT),
        unguarded=bool(options.jit) and _of_trips(options) is None,
        tape=options.tape,
        most=options.max_tape,
        rooms=rooms_of(executable),
        mixing=NativeTapedRegions() if mixes else None,
        forks=forks,
        natively=natively if is_native else None,
        digest=stored,
    )
    return Reverse(program, backend, settings, executable.statistics)


def run_on(
    executable: Executable,
    given: Mapping[str, str],
    arguments: Arguments,
    captured: Mapping[str, Sequence[Any]],
    reverse: Callable[[], Reverse],
    options: Options,
) -> Outcome:
    """Run `executable` on the leaves of `arguments` and of `captured` arrays.

    `given` maps its parameters and shared parameters to those of the user's function. Gradients go through by
    `reverse`, if somebody may ask for one.
    """
    arrays, lanes = arrays_of(executable, given, arguments, captured), arguments.lanes
    if executable.backend.runs_now(unwatched=True) or options.backend == "reference":
        return executable.run(*arrays, lanes)
    return run_through(executable.backend, executable.run, reverse, *arrays, lanes, taped=not options.trace)


def arrays_of(
    executable: Executable, given: Mapping[str, str], arguments: Arguments, captured: Mapping[str, Sequence[Any]]
) -> tuple[list[Any], list[Any]]:
    """The leaves of the program's parameters and those of its shared operands; see `run_on`."""
    shared = executable.program.shared
    every = {name: arguments.leaves[given[name]] if name in given else captured[name] for name in shared}
    return parameters(executable, given, arguments), in_order(every)


def in_order(leaves: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The leaves of all, one after the other, as programs take them."""
    return [leaf for each in leaves.values() for leaf in each]


def parameters(executable: Executable, given: Mapping[str, str], arguments: Arguments) -> list[Any]:
    """The leaves of the program's parameters, `[lanes, ...]`, in order.

    What all lanes share but the program writes is repeated for every lane; a weak number takes the dtype that the
    program's own values give it.
    """
    backend, types, found = executable.backend, executable.program.types, []
    for name in executable.program.parameters:
        user = given[name]
        for leaf, type_ in zip(arguments.leaves[user], leaves(types[name]), strict=True):
            if user in arguments.shared:
                found.append(backend.spread(leaf, type_, arguments.lanes))
            else:
                found.append(leaf if arguments.types[user] == types[name] else backend.cast(leaf, type_.dtype))
    return found
