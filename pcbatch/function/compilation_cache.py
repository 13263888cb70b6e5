"""The session of a batched function under one set of options: linked once, compiled once per signature, and run."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from pcbatch import notice
from pcbatch.errors import CompileError, UsageError
from pcbatch.function import sliced_runs
from pcbatch.function.argument_specs import Blanks, plain_leaf, plain_spec, specs_of
from pcbatch.function.arguments import Arguments, bind_arguments
from pcbatch.function.cache import Cache, Stats
from pcbatch.function.fast_path import Plan
from pcbatch.function.naming import Linkable
from pcbatch.function.pipeline import Pipeline, beginning
from pcbatch.function.reading_cache import ReadProgram, read_program
from pcbatch.function.user_code import pieces_of
from pcbatch.ir import machine
from pcbatch.ir.program import Program
from pcbatch.lowering.captures.captured import Captured
from pcbatch.lowering.captures.guards import CaptureGuards
from pcbatch.options import Options
from pcbatch.reading.kinds import ROOM
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.llvm.hlo import UnsupportedError
from pcbatch.runtime.llvm.program import LlvmProgram
from pcbatch.runtime.machine import gc_pause
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Finished, Outcome, Statistics
from pcbatch.runtime.machine.pool_sizing import FeedbackCache
from pcbatch.runtime.report.faults import sites
from pcbatch.runtime.report.profile import noted
from pcbatch.runtime.strategies.executable import made_rooms

T = TypeVar("T")
logger = logging.getLogger("pcbatch")
logger.addHandler(logging.NullHandler())

SIGNATURES = 64
"""Number of compiled signatures that each batched function keeps, and of sets of options: those used last."""


GROWTH, MOST_ROOM = 8, 1 << 15
"""Factor by which lists whose length differs by lane get more room where a lane lacks it, and the most room."""


class Session:
    """Compiles and runs `function` under `options`; several threads may ask at once.

    `relatives` are those of the same function under other options: what these have found out serves here, too, as far
    as the options that differ do not matter.
    """

    def __init__(self, function: Linkable, options: Options, relatives: Callable[[], Iterable[Session]] = tuple):
        self._function = function
        self._options = options
        self._relatives = relatives
        self._lock = threading.RLock()
        self.compiled: Cache[Any, Pipeline] = Cache(SIGNATURES, lambda pipeline: pipeline.captured_now() is not None)
        """Programs by the types of arguments; several with the same types differ in the values that they have read."""
        self._bound: Cache[Any, Arguments] = Cache(SIGNATURES)
        """Arguments, without their values, of calls with arrays only, by the arrays' specs."""
        self._plans: dict[Any, Plan | None] = {}
        """Warm calls, by the specs of their arguments; their programs are those of `compiled`.

        None where each call has to find out more: what reads an array that is made anew at each look, for one.
        """
        self._last: Plan | None = None
        """One of them that was used of late, and looks at its arguments itself."""
        self._rooms: dict[Any, int] = {}
        """The room of lists whose length differs by lane, where it is more than at first."""
        self.statistics: list[Statistics] = []
        self.lessons = FeedbackCache()  # all relatives have the same

    @cached_property
    def _backend(self) -> Backend:
        return backend_named(self._options.backend)

    @cached_property
    def _static_places(self) -> frozenset[int]:
        names = enumerate(self._function.__signature__.parameters)
        return frozenset(place for place, name in names if name in self._function.static_argnames)

    def _of_relatives(self, find: Callable[[Session], T | None]) -> T | None:
        """Return the first result of `find` among the relatives; one locked by another thread is not waited for."""
        wanted = beginning(self._options)
        for relative in self._relatives():
            if relative is self or beginning(relative._options) != wanted or not relative._lock.acquire(blocking=False):
                continue
            try:
                found = find(relative)
            finally:
                relative._lock.release()
            if found is not None:
                return found
        return None

    def pipeline(self, args: Any, kwargs: Any) -> tuple[Arguments, Pipeline, Captured]:
        """The program for these arguments, the arguments as it takes them, and the values of its captured arrays."""
        arguments = self.bind(args, kwargs)
        pipeline, captured = self.compiled_for(arguments)
        return pipeline.read.flat(arguments), pipeline, captured

    def read(self, args: Any, kwargs: Any) -> ReadProgram:
        """The typed program for these arguments: of one that is compiled, or read for whoever asks."""
        arguments = self.bind(args, kwargs)
        key = (self._backend.place(), arguments.signature, max(ROOM, arguments.longest_row))
        with self._lock, gc_pause.paused():
            known = self.compiled.peek(key)
            if known is not None and known.captured_now() is not None:
                return known.read
            with pieces_of(self._function.__name__):
                return read_program(self._function, arguments, self._backend, room=key[-1])

    def compiled_for(self, arguments: Arguments) -> tuple[Pipeline, Captured]:
        """The program for these arguments, and the values of its captured arrays."""
        backend = self._backend
        place = (backend.place(), arguments.signature)
        key = (*place, self._rooms.get(place, max(ROOM, arguments.longest_row)))
        with self._lock, gc_pause.paused():
            while True:  # what a program is may change while it is looked for
                pipeline = self.compiled.get(key)
                if pipeline is None:
                    pipeline = self.compiled.put(key, self._compiled(key, arguments))
                captured = pipeline.captured_now()
                if captured is not None:
                    return pipeline, captured

    def _compiled(self, key: Any, arguments: Arguments) -> Pipeline:
        """The program for these arguments: one of a relative's as far as options do not matter, or read anew."""
        started = time.perf_counter()
        notice.compiling()
        with pieces_of(self._function.__name__):
            pipeline = self._begun(key, arguments, self._options.may_fork)
            if pipeline.is_written_out_for_nothing:
                pipeline = self._begun(key, arguments, False)
            statistics = pipeline.machine.statistics  # the whole pipeline, or its refusals
        statistics.trace_seconds += time.perf_counter() - started
        logger.debug("%s: generated code for %s", self._function.__name__, arguments.described)
        self.statistics.append(statistics)
        return pipeline

    def _begun(self, key: Any, arguments: Arguments, forking: bool) -> Pipeline:
        """The first stages of the program: those of a relative's, or of one that is read anew."""

        def find(relative: Session) -> Pipeline | None:
            found = relative.compiled.peek(key)
            return found if found is not None and found.read.forking == forking else None

        begun = self._of_relatives(find)
        if begun is not None:
            return begun.under(self._options)
        program = read_program(self._function, arguments, self._backend, forking=forking, room=key[-1])
        return Pipeline.of(program, key, arguments, self._options, self.lessons)

    def bind(self, args: Any, kwargs: Any) -> Arguments:
        """Bind the arguments, and reuse the findings about arrays of such shapes and dtypes."""
        backend, signature = backend_named(self._options.backend), self._function.__signature__
        specs = tuple(plain_spec(value, backend.spec_of) for value in args)
        is_plain = not kwargs and None not in specs and len(args) == len(signature.parameters)
        known = self._bound.get(specs) if is_plain else None
        if known is not None:
            pairs = zip(known.types, args, strict=True)
            return replace(known, leaves={name: [plain_leaf(value, backend.as_arrays)] for name, value in pairs})
        arguments = bind_arguments(signature, self._options, backend, args, kwargs)
        if is_plain and arguments.are(args):
            self._bound.put(specs, replace(arguments, leaves={}))
        return arguments

    def stage(self, name: str, args: Any, kwargs: Any) -> Program | machine.Program:
        """The typed program for these arguments at stage "cfg", "stack", "optimized" or "machine"."""
        arguments, pipeline, _ = self.pipeline(args, kwargs)
        match name:
            case "cfg":
                return pipeline.cfg
            case "stack":
                return pipeline.stack
            case "optimized":
                return pipeline.optimized
        return pipeline.executed(arguments.lanes)

    def adjoint(self, args: Any, kwargs: Any) -> str:
        """The text of the way back for these arguments."""
        arguments, pipeline, _ = self.pipeline(args, kwargs)
        with self._compiling(arguments, pipeline):
            return pipeline.reverse.text(arguments.lanes)

    def llvm(self, args: Any, kwargs: Any) -> str:
        """The text of the native code for these arguments; UsageError PCB534 where they are run in another form."""
        return self._native_text("llvm", args, kwargs)

    def ptx(self, args: Any, kwargs: Any) -> str:
        """The text of the kernel for these arguments; UsageError PCB534 also where there is no such code for a GPU."""
        return self._native_text("ptx", args, kwargs)

    def _native_text(self, stage: str, args: Any, kwargs: Any) -> str:
        arguments, pipeline, _ = self.pipeline(args, kwargs)
        name = self._function.__name__
        with self._compiling(arguments, pipeline):
            machine = pipeline.machine
            if isinstance(machine, LlvmProgram):
                try:
                    return machine.ptx if stage == "ptx" else machine.text
                except UnsupportedError as error:
                    raise UsageError("PCB534", f"{name} has no kernel for a GPU: none is made of {error}") from None
        raise UsageError("PCB534", f"{name} is not run as native code for these arguments, but as: {machine.form}")

    def loop(self, args: Any, kwargs: Any) -> str:
        """The text of the machine's loop for these arguments; UsageError PCB534 where there is none."""
        arguments, pipeline, _ = self.pipeline(args, kwargs)
        with self._compiling(arguments, pipeline):
            machine, form = pipeline.machine, pipeline.machine.form
            if isinstance(machine, Machine):
                loop = machine.legs.loop
                if not loop.trips_together(arguments.lanes):
                    return loop.text(arguments.lanes)
                form = "all blocks in every trip, in order"
        name = self._function.__name__
        raise UsageError("PCB534", f"{name} has no loop over trips for these arguments, but is run as: {form}")

    def check(self, args: Any, kwargs: Any) -> None:
        """Compile without running."""
        arguments, pipeline, _ = self.pipeline(args, kwargs)
        with self._compiling(arguments, pipeline), pipeline.first_time(None):
            pipeline.machine.check(arguments.lanes)

    def compile(self, args: Any, kwargs: Any) -> None:
        """Compile for a call with arguments like these, or of such specs, so that the first one is warm."""
        backend, name = self._backend, self._function.__name__
        if not backend.runs_now():
            raise UsageError("PCB539", f"{name}.compile compiles for ordinary code; call it outside of a graph")
        blanks = self.blanks(args, kwargs)
        arguments, pipeline, captured = self.pipeline(blanks.args, blanks.kwargs)
        form = pipeline.machine.form
        if blanks.any_lanes and not pipeline.machine.any_lanes:
            raise UsageError(
                "PCB539",
                f"for these arguments {name} is compiled for one number of lanes ({form}), and the specs leave it "
                f"open; say how many: {backend.spelling('spec')}([64, ..], ..)",
            )
        if blanks.are_some and pipeline.runs_loops_blindly:
            raise UsageError(
                "PCB539",
                f"an operation of {name} has a loop, which is compiled by running it ({form}) and need not end for "
                "the zeros that stand for a spec; give arrays, such as those of a typical batch",
            )
        with self._compiling(arguments, pipeline), pipeline.first_time(arguments.lanes):
            pipeline.compile(arguments, captured)
        if not kwargs:
            for given in (blanks.args, blanks.with_arrays(backend.as_arrays)):
                self._bind_plan(given, pipeline.read.flat(self.bind(given, kwargs)), pipeline, captured)

    def blanks(self, args: Any, kwargs: Any) -> Blanks:
        """The arguments, arrays in the place of specs."""
        axes, statics = (
            self._options.axes(tuple(self._function.__signature__.parameters)),
            self._options.static_argnames,
        )
        padded = {n: axis for n, axis in axes.items() if n not in statics}
        try:
            places = itertools.chain(map(padded.get, axes), itertools.repeat(None))  # too many, as binding them says
            args = [self._backend.padded(*pair) for pair in zip(args, places, strict=False)]
            kwargs = {n: self._backend.padded(value, padded.get(n)) for n, value in kwargs.items()}
            return Blanks(args, kwargs, axes, statics, self._backend.is_array)
        except TypeError as error:
            raise UsageError("PCB539", f"an argument of {self._function.__name__}: {error}") from None
        except RecursionError:
            name = self._function.__name__
            raise UsageError("PCB511", f"an argument of {name} contains itself, or is nested too deep") from None

    def run_at_once(self, args: Any, kwargs: Any) -> tuple[Pipeline, Outcome]:
        """Run a batch, the long way."""
        arguments, pipeline, captured = self.pipeline(args, kwargs)
        is_ready = pipeline.is_ready(arguments.lanes)
        with self._compiling(arguments, pipeline), pipeline.first_time(arguments.lanes):
            outcome = pipeline.run_at_once(arguments, captured)
        if self._lacks_room(pipeline, outcome):
            *place, room = pipeline.key
            self._rooms[tuple(place)] = room * GROWTH
            return self.run_at_once(args, kwargs)
        if is_ready and not kwargs:
            self._bind_plan(args, arguments, pipeline, captured)
        return pipeline, outcome

    def run_warm(self, args: tuple[Any, ...]) -> tuple[Plan, Finished] | None:
        """Run a batch like one before it, if there was one and nothing has changed since that matters to it."""
        if not self._plans:
            return None
        backend, last = self._backend, self._last
        if last is not None and last.pipeline is self.compiled.last_used and backend.runs_now():
            finished = last.run_checked(args) if backend.place() == last.pipeline.key[0] else None
            if finished is not None and not self._is_refused(last, finished):
                return last, finished
        is_unseen = backend.runs_now(unwatched=True)
        if not (is_unseen or backend.runs_now()):
            return None
        known = self._at_a_glance(args, is_unseen)
        plan = None if known is None else self._plans.get(known[0])
        if known is None or plan is None:
            return None
        pipeline = plan.pipeline
        if pipeline is not self.compiled.last_used and self.compiled.get(plan.pipeline.key) is not pipeline:
            return None  # its program is forgotten
        if plan.checked is not None:
            self._last = plan
        if plan.ready is not None:
            finished = plan.run(known[1])
        else:
            with pieces_of(self._function.__name__):
                finished = plan.run(known[1])
        return None if finished is None or self._is_refused(plan, finished) else (plan, finished)

    def _is_refused(self, plan: Plan, finished: Finished) -> bool:
        """Return whether a run has to be made again, with more room."""
        return finished.values is None and self._lacks_room(plan.pipeline, finished.outcome())

    def _lacks_room(self, pipeline: Pipeline, outcome: Outcome) -> bool:
        """Return whether a lane has failed for a list that lacked room for one more element, and can have it."""
        if not pipeline.full or pipeline.key[-1] >= MOST_ROOM or not self._backend.runs_now():
            return False
        return bool(np.isin(np.asarray(outcome.site), pipeline.full).any())

    def _at_a_glance(self, args: Any, is_unseen: bool) -> tuple[Any, Sequence[Any]] | None:
        """A key of the types of arguments, and their leaves, those of defaults included; None if it takes more.

        Whether somebody watches counts, who may ask for gradients: then it is another run.
        How many were passed counts: a default is one for all lanes, and an array that is passed is not.
        """
        passed, place = len(args), self._backend.place()
        specs = self._backend.specs_of(args) if passed == self._plain_arity else None
        if specs is not None:
            return (passed, place, is_unseen, specs), args
        known = specs_of((*args, *self._defaults[passed:]), self._static_places, self._backend.spec_of)
        return None if known is None else ((passed, place, is_unseen, known[0]), known[1])

    @cached_property
    def _defaults(self) -> tuple[Any, ...]:
        """The default of each parameter, `inspect.Parameter.empty` where there is none."""
        return tuple(each.default for each in self._function.__signature__.parameters.values())

    @cached_property
    def _plain_arity(self) -> int:
        """The number of parameters, if all of them may be arrays; else -1."""
        return -1 if self._static_places else len(self._defaults)

    def _bind_plan(self, args: Any, arguments: Arguments, pipeline: Pipeline, captured: Captured) -> None:
        """Let calls like this one, which has been the second at least, be warm from now on."""
        backend = self._backend
        known = self._at_a_glance(args, backend.runs_now(unwatched=True))
        if known is None or not backend.runs_now() or sites(pipeline.outline):
            return  # what lanes print is looked for the long way
        if (before := self._plans.get(known[0])) is None and known[0] in self._plans:
            return
        look = CaptureGuards.at(pipeline.read.reading.guards, pipeline.read.operands(captured), backend)
        plan = None if look is None else Plan.of(pipeline, arguments, captured, known[1], look, before)
        if len(self._plans) >= SIGNATURES:
            self._plans = {}
        self._plans[known[0]] = plan

    def run_in_slices(self, args: Any, kwargs: Any, options: Options) -> tuple[Pipeline, Outcome]:
        """Run a batch, or go on with a saved one, as the options `progress` and `resume` of `options` say."""
        saved = sliced_runs.read(options) if options.resume is not None else None
        if saved is None:
            arguments = self.bind(args, kwargs)
            pipeline, captured = self.compiled_for(arguments)
        else:
            arguments = sliced_runs.saved_arguments(saved, self._function.__signature__, options, args, kwargs)
            try:
                pipeline, captured = self.compiled_for(arguments)
            except CompileError as error:
                why = (
                    f"{self._function.__name__} is another program now, refused for the arguments in the file: {error}"
                )
                raise saved.refusal("PCB592", why) from None
        with self._compiling(arguments, pipeline):
            return pipeline, pipeline.run_in_slices(arguments, captured, options, saved)

    def made(self) -> tuple[int, int]:
        """Return the numbers of signatures, and of their programs, compiled so far."""
        return len(self.statistics), sum(each.compilations for each in self.statistics)

    def stats(self) -> Stats:
        """Return the cost of compilation so far."""
        pipelines = self.compiled.values()  # once: each time all keys are hashed
        return Stats(
            sum(s.compilations for s in self.statistics),
            len(pipelines),
            sum(s.trace_seconds for s in self.statistics),
            sum(s.compile_seconds for s in self.statistics),
            max((each.machine.stack_entries for each in pipelines), default=0),
            tuple(each.machine.form for each in pipelines),
            tuple(dict.fromkeys(noted(*note) for each in pipelines for note in each.machine.notes)),
            sum(s.hits for s in self.statistics),
            sum(s.misses for s in self.statistics),
            tuple(made_rooms(each.machine) for each in pipelines),
        )

    @contextmanager
    def _compiling(self, arguments: Arguments, pipeline: Pipeline) -> Iterator[None]:
        """Tell the log if something is compiled inside, and how long that took."""
        statistics = pipeline.machine.statistics
        before = (statistics.compilations, statistics.compile_seconds)
        with pieces_of(self._function.__name__):
            yield
        if statistics.compilations > before[0]:
            lanes = arguments.lanes if isinstance(arguments.lanes, int) else "any number of"
            name, seconds = self._function.__name__, statistics.compile_seconds - before[1]
            logger.info("%s: compiled %s for %s lanes in %.2f s", name, arguments.described, lanes, seconds)
