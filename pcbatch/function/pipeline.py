"""The whole pipeline on one page.

source -> reading -> typed cfg -> optimize.cfg, lowering.calls -> stack -> optimize.stack
-> lowering.machine -> machine program -> optimize.machine -> lowering.codegen -> Python source -> table -> executable.
`Pipeline` has a line for each arrow.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from pcbatch import notice
from pcbatch.errors import Span
from pcbatch.function.arguments import Arguments
from pcbatch.function.executing import arrays_of, make_executable, make_reverse, parameters, run_on
from pcbatch.function.identity import program_digest, text_digest
from pcbatch.function.reading_cache import ReadProgram
from pcbatch.function.sliced_runs import LongRun
from pcbatch.ir import machine
from pcbatch.ir.analysis.parallel_call_groups import first_join, groups
from pcbatch.ir.machine import Piece
from pcbatch.ir.machine_verifier import verify_machine
from pcbatch.ir.program import Program
from pcbatch.ir.types import StructType
from pcbatch.lowering.calls import lower_calls
from pcbatch.lowering.captures.captured import Captured, holds, kept
from pcbatch.lowering.codegen.emit import Emitted, checked_sites, emit
from pcbatch.lowering.codegen.environment import NO_ROOM, Environment
from pcbatch.lowering.codegen.steps import Steps
from pcbatch.lowering.machine import lower_stacks
from pcbatch.optimize.machine.compaction import Row
from pcbatch.optimize.machine.deferral import pays
from pcbatch.optimize.machine.forks import apart, loss
from pcbatch.optimize.machine.nodes import Nodes, nodes_of
from pcbatch.optimize.pipeline import machine_passes, optimize, run_passes, verifying
from pcbatch.options import Options
from pcbatch.runtime.adjoint.custom_gradient import run_watched
from pcbatch.runtime.adjoint.reverse import Reverse
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.costs.estimate import USUAL_LANES, Prices, block_costs, block_row, signature_of, signature_of_step
from pcbatch.runtime.llvm.machine_code import Outline, StoredOutline
from pcbatch.runtime.llvm.program import LlvmProgram
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.native_executable import MachineToBe
from pcbatch.runtime.machine.outcome import Finished, Outcome, Statistics
from pcbatch.runtime.machine.pool_sizing import FeedbackCache, FeedbackHistory
from pcbatch.runtime.machine.segments import Snapshot
from pcbatch.runtime.machine.state import Limits
from pcbatch.runtime.resume.checkpoint import Saved
from pcbatch.runtime.schedules.adaptive import EXPENSIVE, expensive_blocks
from pcbatch.runtime.store import cache_session
from pcbatch.runtime.store.cache_session import Name
from pcbatch.runtime.strategies.executable import Executable, resumable
from pcbatch.runtime.strategies.local import LocalMachine
from pcbatch.runtime.strategies.on_the_fly import OnTheFly
from pcbatch.runtime.strategies.straight_line import StraightLine
from pcbatch.threads import once

APART = "this call is not made at the same time as the one before it"
IN_TURN = "this call and those behind it are made one after the other"


_BEGINNING = ("stack", "optimized", "lowered")
"""The stages to which most options do not matter."""


def beginning(options: Options) -> tuple[Any, ...]:
    """The options that matter to the first stages of the pipeline, up to the machine program before its passes."""
    return options.backend, options.jit is True, options.may_fork, repr(options.in_axes), options.static_argnames


@dataclass(frozen=True)
class Pipeline:
    """One program for one signature of arguments: every stage of the pipeline, made when it is asked for."""

    read: ReadProgram
    key: Any
    """The types of the user's arguments, and where it runs: by which its session finds it."""
    environment: Environment
    arguments: Arguments
    options: Options
    lessons: FeedbackHistory = field(default_factory=FeedbackHistory, repr=False, compare=False)
    """The feedback of its runs, and of those of the same program under other options."""
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False, compare=False)
    _ready: set[Any] = field(default_factory=set, init=False, repr=False, compare=False)
    """The numbers of lanes that the machine is compiled for; for legs, with the capacities of stacks."""
    _traces: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Traces of pieces by which something was found out: for the first program, and no longer."""

    @classmethod
    def of(
        cls, program: ReadProgram, key: Any, arguments: Arguments, options: Options, lessons: FeedbackCache
    ) -> Pipeline:
        """The pipeline of a program that was read for `arguments`."""
        backend = backend_named(options.backend)
        captured = program.captured(backend)
        assert captured is not None, "what was read has changed meanwhile"
        known = kept(captured.leaves, program.reading.guards.of_helpers(), backend.is_variable)
        environment = Environment(
            backend,
            program.reading.names,
            captured.without_values(),
            captured.types,
            kept=known,
            tapes=program.takes_gradients,
        )
        flat, learned = program.flat(arguments).without_values(), lessons.of((key, program.key))
        return cls(program, key, environment, flat, options, learned)

    def captured_now(self) -> Captured | None:
        """Return the captured arrays as they are now; None if a dependence of the program has changed."""
        captured = self.read.captured(self.environment.backend)
        if captured is None or captured.types != self.environment.operand_types:
            return None
        return captured if holds(self.environment.kept, captured.leaves) else None

    def under(self, options: Options) -> Pipeline:
        """The program under other options, which do not matter to the first stages (`beginning`): these are kept."""
        found = replace(self, options=options)
        vars(found).update({name: value for name, value in vars(self).items() if name in _BEGINNING})
        return found

    def is_ready(self, lanes: Any, capacity: int | None = None) -> bool:
        """Return whether the machine is compiled for `lanes` lanes; for a leg alone with stacks of this `capacity`."""
        return isinstance(lanes, int) and self._of_lanes(lanes, capacity) in self._ready

    def _of_lanes(self, lanes: int, capacity: int | None) -> tuple[int | None, int | None]:
        """Return the key of the compiled program for this number of lanes."""
        return None if lanes and capacity is None and self.machine.any_lanes else lanes, capacity

    @contextlib.contextmanager
    def first_time(self, lanes: Any, capacity: int | None = None) -> Iterator[None]:
        """Admit one thread at a time, as long as something may be compiled inside for `lanes` lanes.

        For a leg alone, with the `capacity` of its stacks.
        """
        if self.is_ready(lanes, capacity):
            yield
            return
        notice.compiling()
        with self._lock:
            with self.environment.backend.tracing_once(self._traces):
                yield
            self._traces.clear()
            if isinstance(lanes, int):
                self._ready.add(self._of_lanes(lanes, capacity))

    @property
    def cfg(self) -> Program:
        """The typed cfg program."""
        return self.read.reading.program

    @cached_property
    def steps(self) -> Steps:
        """The steps of its pieces."""
        return Steps(self.environment)

    @cached_property
    def stack(self) -> Program:
        """The stack program, its control flow optimised, its stacks not."""
        return lower_calls(optimize(self.cfg), frozenset(self.environment.operand_types))

    @cached_property
    def optimized(self) -> Program:
        """The stack program after all passes."""
        return optimize(self.stack)

    def parameters(self) -> dict[str, str]:
        """Parameter of the stack program to parameter of the user's function."""
        if self._outline is not None:
            return dict(self._outline.users)
        return dict(zip(self.optimized.entry.parameters, self.arguments.types, strict=True))

    @cached_property
    def lowered(self) -> machine.Program:
        """The machine program before its passes."""
        result = self.read.reading.result
        program = lower_stacks(self.optimized, self.read.reading.origin, self.environment)
        return replace(program, structure=result if isinstance(result, StructType) else None)

    @cached_property
    def machine_program(self) -> machine.Program:
        """The machine program after all passes, from which Python is generated."""
        if self.options.may_fork:
            losses = {} if self.options.fork is True else self.losses
            forked = [number for number in self._groups if number not in losses]
            if forked:
                return self._passed(forked)
        return self._deferring(self._passed((), None)) if self.options.may_defer else self._passed(())

    def _deferring(self, program: machine.Program) -> machine.Program:
        """The program that puts off, of all that this one does, what pays."""
        found = [block for block in program.blocks if block.deferred is not None]
        if not found:
            return program
        costs = block_costs(emit(program, self.environment).load(), self.environment.backend)
        numbers = [block.deferred.of for block in found if block.deferred is not None and pays(program, costs, block)]
        return program if len(numbers) == len(found) else self._passed((), numbers)

    @cached_property
    def _forkable(self) -> machine.Program:
        """The machine program with all groups of calls that can be made at the same time."""
        return self._passed(None)

    @property
    def _groups(self) -> list[int]:
        """The blocks in which groups of calls begin."""
        joins = first_join(self._forkable)
        return [group.block for group in groups(self._forkable) if group.block < joins]

    @cached_property
    def losses(self) -> dict[int, str]:
        """The reasons, by the block in which a group of calls begins, why it does not pay to fork them."""
        program = self._forkable
        if not groups(program):
            return {}
        table = emit(program, self.environment).load()
        prices = Prices(block_costs(table, self.environment.backend), USUAL_LANES)
        expensive = expensive_blocks(prices, EXPENSIVE)
        found = {group.block: loss(program, group, expensive) for group in groups(program)}
        return {number: why for number, why in found.items() if why is not None}

    @cached_property
    def unforked(self) -> tuple[tuple[Span | None, str], ...]:
        """The places of calls that follow each other and are not made at the same time, and why."""
        if self._outline is not None:
            return self._outline.unforked
        blocks, obstacle = self.lowered.blocks, self.options.fork_obstacle
        found = {number: f"{APART}: {why}" for number, why in apart(self.lowered).items()}
        if obstacle is not None:
            found |= dict.fromkeys(self._groups, f"{IN_TURN}: {obstacle}")
        elif self.options.fork == "auto":
            found |= {number: f"{IN_TURN}: {self.losses[number]}" for number in self._groups if number in self.losses}
        places = [(blocks[number].terminator.span, text) for number, text in sorted(found.items())]
        return (*places, *self.read.unforked_loops)

    @property
    def is_written_out_for_nothing(self) -> bool:
        """True if loops are written out for their calls, but none are forked, as it does not pay."""
        return self.read.has_written_out and not groups(self.machine_program)

    def _passed(self, forking: Collection[int] | None, deferring: Collection[int] | None = ()) -> machine.Program:
        shared = [name for name, user in self.parameters().items() if user in self.arguments.shared]
        backend, steps = self.environment.backend, self.steps
        checked = partial(checked_sites, steps=steps, environment=self.environment)
        merging, limited = not self.options.is_unmerged, self.options.max_steps is not None
        with backend.tracing_once(self._traces, self.options.jit is True):
            every = steps.every(self.lowered)
            backend.trace_ahead((step.piece, signature_of_step(self.lowered, step), label) for step, label in every)
            passes = machine_passes(
                checked, shared, merging=merging, forking=forking, deferring=deferring, limited=limited
            )
            return run_passes(self.lowered, passes, verifying(verify_machine))

    def executed(self, lanes: Any) -> machine.Program:
        """Return the program that the machine executes for `lanes` lanes.

        On which numbers of rows blocks may run depends on these, and which are native.
        """
        sized, program = self.machine.program_for(lanes), self.machine_program
        pairs = zip(program.blocks, sized.blocks, strict=True)
        blocks = tuple(replace(block, chunks=each.chunks) for block, each in pairs)
        return replace(program, name=self.machine.program.name, blocks=blocks, native=sized.native)

    @cached_property
    def emitted(self) -> Emitted:
        """The generated Python source."""
        return emit(self.machine_program, self.environment)

    @cached_property
    def table(self) -> machine.Program:
        """The executable table, from executing the generated source."""
        program = self.emitted.load()
        with self.environment.backend.tracing_once(self._traces, self.options.jit is True):
            program = self.steps.attached(self.machine_program, machine.with_kept(program, self.environment.kept))
        return replace(program, name=self.options.name or program.name)

    @property
    def outline(self) -> machine.Program:
        """The table, perhaps without code: all that a call and its report need."""
        return self.table if self._outline is None else self._outline.program

    @cached_property
    def full(self) -> list[int]:
        """The sites at which a lane fails whose list has no room for one element more."""
        return [site for site, fault in enumerate(self.outline.faults) if fault.message == NO_ROOM[1]]

    @once
    def machine(self) -> Executable:
        """The machine that runs the table, or native code that runs it and was found on disk."""
        if self._outline is None:
            machine = self._made()
            self._keep(machine)
            return machine
        known, statistics, options = self._outline, Statistics(), self.options

        def name_of(*part: Any) -> Name:
            return Name(lambda: known.digest, (True, *part), statistics.note)

        def made() -> Machine:
            machine = resumable(self._made())
            machine.programs.statistics = statistics
            return machine

        backend, limits = self.environment.backend, Limits.of(options.max_depth, options.max_steps)
        return LlvmProgram(
            MachineToBe(known.program, backend, limits, options.deterministic, statistics, name_of, made)
        )

    def _made(self) -> Executable:
        digest = partial(program_digest, self.table, ())
        return make_executable(self.table, self.options, digest, self._traces, self.lessons, lambda: self.nodes)

    @property
    def _outline(self) -> Outline | None:
        """The outline of the table in a cache on disk: native code runs without the table."""
        return None if self._stored is None else self._stored.found

    @once
    def _stored(self) -> StoredOutline | None:
        """The outline on disk, by what was read; None where there is no cache, or where that does not say all."""
        store, options, read = cache_session.current(), self.options, self.read
        may_be_native = options.strategy == "pc" and options.form != "lockstep" and options.jit is True
        environment = self.environment
        backend = environment.backend
        is_plain = not (environment.kept or environment.tapes or read.has_written_out)
        if store is None or not (may_be_native and is_plain) or options.backend != "tensorflow":
            return None
        if backend.place() != "CPU" or read.reading.guards.of_helpers():
            return None
        given = (tuple(self.arguments.types.items()), sorted(self.arguments.shared), read.reading.origin)
        others = (tuple(environment.operand_types.items()), read.reading.parameters)
        said = repr(replace(options.of_programs, name=None))
        digest = text_digest(self.cfg, environment, given, others, said)
        if digest is None:
            return None
        return StoredOutline(store, digest, backend, options.name, read.reading.result)

    def _keep(self, made: Executable) -> None:
        """Keep the outline of native code, if there is a place for it."""
        stored = self._stored
        if stored is None or not isinstance(made, LlvmProgram) or made.program is not self.table:
            return
        digest = made.machine.programs.name_of().digest()
        if digest is not None:
            unforked = () if self.options.fork is False else self.unforked
            table = replace(self.table, name=self.machine_program.name)
            stored.keep(Outline.of(table, self.parameters(), unforked, digest))

    @property
    def nodes(self) -> Nodes:
        """The nodes of batching on the fly, with the Python of their code."""
        found = nodes_of(self.machine_program)
        codes = (emit(code, self.environment).load() for code in found.codes)
        return replace(found, codes=tuple(machine.with_kept(code, self.environment.kept) for code in codes))

    @once
    def reverse(self) -> Reverse:
        """Reverse mode of the table."""
        with self.environment.backend.tracing_once(self._traces, self.options.jit is True):
            return make_reverse(self.table, self.options, self.machine, partial(program_digest, self.table, ()))

    def row(self, block: int) -> Row:
        """Return the properties of one lane's row at the block of this number, costs in the unit of `runtime.costs`."""
        backend = self.environment.backend
        with backend.tracing_once(self._traces, self.options.jit is True):
            return block_row(self.table, self.table.blocks[block], backend)

    def run_at_once(self, arguments: Arguments, captured: Captured) -> Outcome:
        """Run the machine on `arguments`, which fit this pipeline's, and on the captured values of now."""
        given = self.parameters()
        return self.noted(run_on(self.machine, given, arguments, captured.leaves, lambda: self.reverse, self.options))

    def noted(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a run with the notes on calls that are not made at the same time."""
        if self.options.fork is False or not self.unforked:
            return outcome
        return replace(outcome, notes=(*outcome.notes, *self.unforked))

    def compile(self, arguments: Arguments, captured: Captured) -> None:
        """Compile for a run on `arguments`, which fit this pipeline's, and on the present captured values."""
        machine = self.machine
        given, shared = arrays_of(machine, self.parameters(), arguments, captured.leaves)
        machine.compile(given, shared, arguments.lanes)

    @property
    def runs_loops_blindly(self) -> bool:
        """Return whether compiling ahead of time runs loops inside of operations, on whatever is given."""
        if not isinstance(self.machine, StraightLine | LocalMachine | OnTheFly):
            return False
        backend, program = self.environment.backend, self.table
        pieces = [item for block in program.blocks for item in block.body if isinstance(item, Piece)]
        types = [(piece, signature_of(program, piece)) for piece in pieces]
        return any(backend.facts(piece, each.reads, each.shared).has_loop for piece, each in types)

    @property
    def may_be_taped(self) -> bool:
        """True if a run that a tape watches may be taped."""
        return not self.options.trace and self.options.backend != "reference"

    def run_watched(self, arrays: Sequence[Any], lanes: int) -> Finished | None:
        """Run in ordinary code on arrays as the table takes them; None where nobody watches."""
        machine = self.machine
        ready = machine.ready(arrays, lanes) if machine.is_numpys else None
        return run_watched(machine.backend, machine.run, lambda: self.reverse, arrays, lanes, ready)

    @cached_property
    def digest(self) -> str:
        """A digest that identifies the program in every process."""
        return program_digest(self.table, tuple(self.read.reading.guards.described()))

    def run_in_slices(self, arguments: Arguments, captured: Captured, options: Options, saved: Saved | None) -> Outcome:
        """The same as `run_at_once`, as `options` say; from where `saved` stands, if that is given."""
        machine = resumable(self.machine)

        def first_time(snapshot: Snapshot) -> contextlib.AbstractContextManager[None]:
            return self.first_time(snapshot.pool.lanes, int(machine.legs.capacity(snapshot)))

        given = self.parameters()
        run = LongRun(machine, given, options, self.digest, len(self.table.blocks), captured.leaves, first_time)
        if saved is not None:
            return run.resume(saved, arguments)
        flat = self.read.flat(arguments)
        return run.start(arguments, flat, parameters(self.machine, given, flat))
