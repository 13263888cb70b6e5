"""The way forward of a taped run: a plain graph that calls a compiled segment again and again and keeps its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from pcbatch.ir.types import leaves
from pcbatch.runtime.adjoint.put_aside import Aside, PutAside
from pcbatch.runtime.adjoint.segments import Segment, Segments
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.legs import Snapshot
from pcbatch.runtime.machine.outcome import Statistics
from pcbatch.runtime.machine.pool import Pool


class Forward:
    """What runs one program forward, taped; segments that are compiled are counted in `statistics`."""

    def __init__(self, segments: Segments, put_aside: PutAside, *, jit: bool, statistics: Statistics):
        self.segments, self.put_aside, self.backend = segments, put_aside, segments.backend
        self.program, self.layout = segments.context.program, segments.layout
        self.jit, self.statistics = jit, statistics
        self._made: dict[tuple[Pool, int | None], Callable[..., Any]] = {}

    tells = 0
    """How many arrays `told` gives."""

    @cached_property
    def pointers(self) -> list[str]:
        """The results that lie in stacks alone, which must be known by their pointers."""
        return [name for name in self.program.results if self.layout.storage(name) == "stack"]

    def run(self, lanes: int | None, fixed: int | None = None) -> Callable[..., Any]:
        """The program of a taped run of so many lanes, None where that is not known: see `Reverse.run`.

        With stacks of a `fixed` capacity it is over where a lane lacks room.
        """
        segments = self.segments

        def program(*arrays: Array) -> list[Array]:
            first, operands = self.begin(arrays, lanes, fixed)
            pool, every = first.pool, arrays[-1]
            compiled, zero = self.segment(pool, fixed), self.backend.constant(0)

            def ran(snapshot: Snapshot, aside: Aside, number: Array) -> tuple[list[Array], Aside, Array]:
                packed = list(compiled(*segments.legs.flat(snapshot), *operands, every))
                tape = [*segments.unpack(packed, pool).tape.values()]
                return self._without_tape(packed), self.put_aside.added(aside, number, snapshot, tape), number + 1

            def more(carried: Any) -> Any:
                packed, aside, number = carried
                before = self._unpacked(packed, pool)
                grown = before.snapshot if fixed is not None else segments.grown(before.snapshot, before.lacking)
                return ran(grown, aside, number)

            def goes_on(carried: Any) -> Array:
                now = self._unpacked(carried[0], pool)
                return now.goes_on if fixed is None else now.goes_on & ~now.lacking

            start = ran(first, self.put_aside.nothing(first), zero)
            packed, aside, number = self.backend.while_loop(goes_on, more, start)
            last = self._unpacked(packed, pool).snapshot
            pointers = [last.state[self.layout.pointer(name)] for name in self.pointers]
            kept = [*last.counters.values(), *last.outputs.values(), *pointers, *self.told(last)]
            return [zero + segments.legs.capacity(last), *kept, number, *aside]

        return self.backend.compile(program, False)

    def begin(self, arrays: Sequence[Array], lanes: int | None, fixed: int | None) -> tuple[Snapshot, Sequence[Array]]:
        """The beginning of a run on what its program is given, and the operands of its segments."""
        count, (*given, capacity, every) = len(self.layout.inputs), arrays
        pool = Pool.of(lanes if lanes is not None else every)
        first = self.segments.legs.begin(given[:count], pool, self._first(capacity, fixed), every)
        return first, given[count:]

    def told(self, last: Snapshot) -> list[Array]:
        """What more is to be told of a run than its outcome."""
        return []

    def _first(self, capacity: Array, fixed: int | None) -> Any:
        """The capacity of the first stacks."""
        limits = self.segments.legs.limits
        if limits.roomy:
            return limits.largest_capacity
        return capacity if fixed is None else fixed

    def _without_tape(self, packed: Sequence[Array]) -> list[Array]:
        return list(packed[: len(packed) - len(self.segments.tapes.specs(None))])

    def _unpacked(self, packed: Sequence[Array], pool: Pool) -> Segment:
        return self.segments.unpack([*packed, *self.segments.tapes.specs(None)], pool)

    def segment(self, pool: Pool, fixed: int | None = None) -> Callable[..., Any]:
        """The program of a segment: from flat snapshot, shared operands and the number of examples to a packed segment.

        On stacks of any capacity, or of a `fixed` one.
        """
        pool = pool.static
        segments = self.segments

        def program(*arrays: Array) -> list[Array]:
            with self.statistics.tracing(counts=True):
                remaining = iter(arrays)
                snapshot = segments.legs.snapshot(remaining, pool)
                *shared, examples = remaining
                return segments.pack(segments.segment(snapshot, shared, examples))

        specs = [*segments.legs.specs(pool, fixed), *self.operand_specs, ("int32", ())]
        if (pool, fixed) not in self._made:
            self._made[pool, fixed] = self.backend.compile(program, self.jit, specs)
        return self._made[pool, fixed]

    @cached_property
    def operand_specs(self) -> list[Spec]:
        """The dtypes and shapes of the leaves of all shared operands."""
        operands = [leaf for name in self.program.shared for leaf in leaves(self.program.shared_types[name])]
        return [(leaf.dtype, leaf.shape) for leaf in operands]
