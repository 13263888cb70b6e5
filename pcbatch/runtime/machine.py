"""The machine: program-counter autobatching of a table of blocks (Radul et al., MLSys 2020, Algorithm 2).

One loop; in each trip the schedule picks blocks, and each picked block runs for all lanes that wait at it and have
room for what it pushes, whatever their depth of recursion. The loop ends when no lane can run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pcbatch.diagnostics import Diagnostic, PrimitiveError, Span, UsageError
from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime import values
from pcbatch.runtime.backends.protocol import Array, Backend, Explanation
from pcbatch.runtime.limits import Limits
from pcbatch.runtime.loop import Loop
from pcbatch.runtime.outcome import Outcome, Statistics
from pcbatch.runtime.schedules import schedule_named
from pcbatch.runtime.state import Layout, State
from pcbatch.runtime.status import LaneStatus
from pcbatch.runtime.table import Piece, Program
from pcbatch.runtime.validate import validate


class Machine:
    """Runs one program. Compiled once for each number of lanes and shape of shared operands, then reused."""

    def __init__(
        self,
        program: Program,
        backend: Backend,
        *,
        schedule: str = "auto",
        jit: bool = True,
        max_depth: int | None = None,
        max_steps: int | None = None,
    ):
        validate(program)
        self.program = program
        self.backend = backend
        self.jit = jit
        limits = Limits.of(max_depth, max_steps)
        self.layout = Layout(program, capacity=limits.max_depth)
        self.loop = Loop(self.layout, limits, backend, schedule_named(schedule), spread_live=not jit)
        self.statistics = Statistics()
        self.fault_names = tuple(dict.fromkeys(name for site in program.faults for name in site.arguments))
        self._compiled: dict[int | None, Callable[..., Any]] = {}

    # -- from outside --------------------------------------------------------------------------------------------------

    def run(self, arguments: Sequence[Any], shared: Sequence[Any], lanes: Any) -> Outcome:
        """Run `lanes` lanes (an int, or an int32 scalar where it is not known before the run).

        `arguments` has one structure of `[lanes, ...]` arrays for each parameter, `shared` one structure for each
        shared operand. Raises UsageError PCB531 for shapes that do not fit, PrimitiveError PCB440/PCB441 where an
        operation cannot be compiled or, in graph mode, fails.
        """
        flat = self._leaves("argument", self.program.parameters, self.program.types, arguments, lanes)
        flat += self._leaves("shared operand", self.program.shared, self.program.shared_types, shared, None)
        if not isinstance(lanes, int):
            flat.append(lanes)
        sealed = self.backend.seal(self._program_for(lanes), self.program.name)
        with self._timed(), self._explaining():
            outputs = sealed(*flat)
        return self._outcome(list(outputs))

    def check(self, lanes: int) -> None:
        """Compile for `lanes` lanes without running; raises what `run` would raise before it runs."""
        types: list[tuple[int | None, TensorType]] = [
            (lanes, leaf) for name in self.program.parameters for leaf in self.layout.leaves(name)
        ]
        types += [(None, leaf) for name in self.program.shared for leaf in leaves(self.program.shared_types[name])]
        with self._timed(), self._explaining():
            self.backend.lower(self._program_for(lanes), types, self.jit)

    def _program_for(self, lanes: Any) -> Callable[..., Any]:
        """The compiled program for a static number of lanes, or one for all others."""
        key = lanes if isinstance(lanes, int) else None
        if key not in self._compiled:
            self._compiled[key] = self.backend.compile(lambda *arrays: self._program(arrays, key), self.jit)
        return self._compiled[key]

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        """Count what is compiled inside, and the seconds beyond tracing."""
        known, started, traced = self.statistics.compilations, time.perf_counter(), self.statistics.trace_seconds
        yield
        if self.statistics.compilations > known:
            tracing = self.statistics.trace_seconds - traced
            self.statistics.compile_seconds += time.perf_counter() - started - tracing

    def _leaves(
        self, what: str, names: Sequence[str], types: Mapping[str, Any], given: Sequence[Any], lanes: Any
    ) -> list[Array]:
        """The leaves of the given structures as arrays of the right dtype, their shapes checked."""
        if len(names) != len(given):
            raise UsageError("PCB531", f"{self.program.name} takes {len(names)} {what}s, not {len(given)}")
        found = []
        for name, value in zip(names, given, strict=True):
            for type_, leaf in zip(leaves(types[name]), values.flatten(types[name], value), strict=True):
                array = self.backend.array(leaf, type_.dtype)
                expected = type_.shape if lanes is None else (lanes if isinstance(lanes, int) else None, *type_.shape)
                shape = tuple(array.shape)
                if len(shape) != len(expected) or any(
                    got is not None and wanted is not None and got != wanted
                    for got, wanted in zip(shape, expected, strict=True)
                ):
                    raise UsageError(
                        "PCB531", f"{what} {name!r} of {self.program.name} has shape {shape}, not {expected}"
                    )
                found.append(array)
        return found

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        """Raise what the array library refuses inside as a PrimitiveError at the user's source."""
        try:
            yield
        except Exception as error:
            explained = self.backend.explain(error)
            if explained is None:
                raise
            raise PrimitiveError([self._diagnostic(explained)]) from error

    def _diagnostic(self, explained: Explanation) -> Diagnostic:
        span = self._span(explained)
        if self.jit:
            help = "use another operation, or jit=False to run as a plain graph"
            return Diagnostic("PCB440", f"XLA cannot compile this: {explained.gist}", span, help=help)
        help = "`assert` before it what it needs; under XLA (jit=True) such operations give NaN instead"
        return Diagnostic("PCB441", f"an operation failed while it ran: {explained.gist}", span, help=help)

    def _span(self, explained: Explanation) -> Span | None:
        """The user's line that the error comes from, or else the block, as far as the error tells."""
        blocks = {block.label: block for block in self.program.blocks}
        block = next((blocks[scope] for scope in reversed(explained.scopes) if scope in blocks), None)
        if block is None:
            return None
        for piece in (item for item in block.body if isinstance(item, Piece)):
            code = piece.function.__code__
            for file, line in explained.frames:
                place = line - code.co_firstlineno - 1
                if file == code.co_filename and 0 <= place < len(piece.spans) and piece.spans[place] is not None:
                    return piece.spans[place]
        return block.span

    # -- the compiled program ------------------------------------------------------------------------------------------

    def _program(self, arrays: Sequence[Array], lanes: Any) -> list[Array]:
        """The whole run on flat arrays: arguments, shared operands, and the number of lanes where it is not static."""
        started = time.perf_counter()
        remaining = iter(arrays)
        inputs = {name: [next(remaining) for _ in self.layout.leaves(name)] for name in self.program.parameters}
        shared = {}
        for name in self.program.shared:
            type_ = self.program.shared_types[name]
            shared[name] = self.backend.wrap(values.pack(type_, [next(remaining) for _ in leaves(type_)]), type_)
        if lanes is None:
            lanes = next(remaining)
            if inputs and any(inputs.values()):  # a shape is a constant to the compiler, a value need not be
                lanes = self.backend.lanes_of(next(leaf for group in inputs.values() for leaf in group))
        state = self.layout.start(self.backend, lanes, inputs, self.backend.lane_numbers(lanes))
        state, counters = self.loop.run(state, shared)
        outputs = self._outputs(state, counters, lanes)
        self.statistics.compilations += 1
        self.statistics.trace_seconds += time.perf_counter() - started
        return outputs

    def _outputs(self, state: State, counters: dict[str, Array], lanes: Any) -> list[Array]:
        """The leaves of the Outcome, in the order in which `_outcome` puts them together."""
        backend, example = self.backend, state["example"]
        statuses = backend.array([LaneStatus.OK, *(site.status for site in self.program.faults)], "int32")
        status = backend.take(statuses, state["fault"])
        unfinished = (state["fault"] == 0) & (state["pc"] < self.layout.finished)
        status = backend.where(unfinished, backend.constant(LaneStatus.UNFINISHED), status)
        failed = status != LaneStatus.OK
        results = []
        for name in self.program.results:
            for type_, leaf in zip(self.layout.leaves(name), self.layout.read(backend, state, name), strict=True):
                results.append(backend.where(failed, self._blank(lanes, type_), leaf))
        shown = [leaf for name in self.fault_names for leaf in self.layout.read(backend, state, name)]
        place = backend.where(state["fault"] > 0, state["pc"] - self.layout.failed(0), backend.constant(-1))
        by_lane = [status, state["fault"] - 1, place, state["steps"], *results, *shown]
        by_example = [backend.scatter(array, example) for array in by_lane]
        return [counters["executions"], counters["active"], counters["trips"], *by_example]

    def _blank(self, lanes: Any, type_: TensorType) -> Array:
        """What the outputs of a failed lane read."""
        zeros = self.backend.zeros(lanes, type_)
        return zeros + float("nan") if type_.dtype.startswith(("float", "bfloat", "complex")) else zeros

    def _outcome(self, outputs: Sequence[Array]) -> Outcome:
        executions, active, trips, status, site, place, steps, *arrays = outputs
        remaining = iter(arrays)

        def structure(name: str) -> Any:
            return values.pack(self.program.types[name], [next(remaining) for _ in self.layout.leaves(name)])

        results = tuple(structure(name) for name in self.program.results)
        shown = {name: structure(name) for name in self.fault_names}
        return Outcome(
            values=results,
            status=status,
            site=site,
            place=place,
            fault_values=shown,
            executions=executions,
            active=active,
            trips=trips,
            steps=steps,
            backend=self.backend,
            can_fail=self.loop.can_fail,
        )
