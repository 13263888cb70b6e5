"""The way forward of a taped run: a plain graph that calls a compiled segment again and again and keeps its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from pcbatch.ir.types import leaves
from pcbatch.runtime.adjoint.checkpointing import Aside, ResidualStore
from pcbatch.runtime.adjoint.segments import Segment, Segments
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.outcome import Statistics
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.segments import Snapshot
from pcbatch.runtime.store.cache_session import Name

_Carried = tuple[Sequence[Array], Aside, Array]
"""The last segment, packed without its tape, the store so far, and the number of segments."""


class Forward:
    """The forward pass, taped, of one program; the segments that it compiles are counted in `statistics`.

    On disk programs are known as `name_of(..)` says.
    """

    def __init__(
        self,
        segments: Segments,
        put_aside: ResidualStore,
        name_of: Callable[..., Name],
        *,
        jit: bool,
        statistics: Statistics,
    ):
        self.name_of = name_of
        self.segments, self.put_aside, self.backend = segments, put_aside, segments.backend
        self.program, self.layout = segments.context.program, segments.layout
        self.jit, self.statistics = jit, statistics
        self._made: dict[tuple[Pool, int | None], Callable[..., Any]] = {}
        self._firsts: dict[tuple[int, int | None], Callable[..., Any]] = {}

    tells = 0
    """Number of arrays that `told` returns."""

    @cached_property
    def pointers(self) -> list[str]:
        """The results that lie in stacks alone, which must be known by their pointers."""
        return [name for name in self.program.results if self.layout.storage(name) == "stack"]

    def run(self, lanes: int | None, fixed: int | None = None) -> Callable[..., Any]:
        """The program of a taped run of so many lanes, None where that is not known: see `Reverse.run`.

        With stacks of a `fixed` capacity it is over where a lane lacks room.
        """

        def program(*arrays: Array) -> list[Array]:
            first, operands = self.begin(arrays, lanes, fixed)
            packed = self._ran(first, operands, arrays[-1], fixed)
            return self._all(first, operands, arrays[-1], fixed, packed)

        return self.backend.compile(program, False, name=self.name_of("forward", lanes, fixed))

    def alone(self, lanes: int, fixed: int | None = None) -> Callable[..., Any]:
        """The program of the first segment of such a run, most often the only one: from ordinary code, without a loop.

        It gives a scalar bool, whether there are more, `ended` as it is then, and the packed segment. Else `rest` goes
        on from there. A loop that carries all this takes 0.4 ms in a plain graph even where it turns never.
        """

        def program(*arrays: Array) -> list[Array]:
            packed, now = self._begun(arrays, lanes, fixed)
            return [self._goes_on(now, fixed), *self.ended(now.snapshot), *packed]

        return self.backend.compile(program, False, name=self.name_of("alone", lanes, fixed))

    def rest(
        self, lanes: int, fixed: int | None, packed: Sequence[Array], given: Sequence[Array]
    ) -> Callable[..., Any]:
        """The program of such a run on from its first segment, which it is `given` first, `packed`.

        It gives how it has ended, how many segments it had, and what is put aside of all but the first. Lanes and
        stacks may become more: so it is not made for as many as there are.
        """
        count = len(packed)
        changing = self.segments.legs.specs(Pool.of(lanes), fixed)
        same: list[Spec] = [(each.dtype.name, tuple(each.shape)) for each in (*packed[len(changing) :], *given)]

        def program(*arrays: Array) -> list[Array]:
            return self._further(arrays[:count], arrays[count:], self.pool(arrays[count:], lanes), fixed)

        return self.backend.compile(program, False, [*changing, *same], self.name_of("rest", lanes, fixed))

    def described(self, lanes: int) -> Callable[..., Any]:
        """The program of a run in a caller's graph: as `rest`, and last the tape of the first segment, as it is.

        What is only there for runs of more segments is a conditional that stays one operation.
        """

        def program(*arrays: Array) -> list[Array]:
            packed, now = self._begun(arrays, lanes, None)
            pool = self.pool(arrays, lanes)
            alone = [*self.ended(now.snapshot), self.backend.constant(1), *self.put_aside.nothing(now.snapshot)]
            found = self.backend.cond(
                now.goes_on, lambda: self._further(packed, arrays, pool, None), alone, seldom=True
            )
            return [*found, *packed[len(packed) - self.recorded :]]

        return self.backend.compile(program, False)

    @property
    def recorded(self) -> int:
        """The number of arrays in the tape of a segment."""
        return len(self.segments.tapes.keys)

    def pool(self, arrays: Sequence[Array], lanes: int | None) -> Pool:
        """Return the pool of a run from its program's inputs."""
        return Pool.of(lanes if lanes is not None else arrays[-1])

    def operands(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """The operands of the segments of such a run."""
        return arrays[len(self.layout.inputs) : -2]

    def _begun(self, arrays: Sequence[Array], lanes: int, fixed: int | None) -> tuple[list[Array], Segment]:
        """The first segment of a run, packed and as it is.

        Where it is likely to be the only one, it and what it begins with are one compiled program: of what is made
        outside, XLA copies all that changes. 64 small TreeLSTMs take 0.97 of the time of a step so.
        """
        if self.segments.tapes.are_likely_enough(lanes):
            packed = list(self._first_of(lanes, fixed)(*arrays))
        else:
            first, operands = self.begin(arrays, lanes, fixed)
            packed = self._ran(first, operands, arrays[-1], fixed)
        return packed, self.segments.unpack(packed, self.pool(arrays, lanes))

    def _first_of(self, lanes: int, fixed: int | None) -> Callable[..., Any]:
        """The compiled program of a beginning and the first segment, which is that of all others inside."""

        def program(*arrays: Array) -> list[Array]:
            first, operands = self.begin(arrays, lanes, fixed)
            return self._ran(first, operands, arrays[-1], fixed)

        if (lanes, fixed) not in self._firsts:
            self._firsts[lanes, fixed] = self.backend.compile(program, self.jit)
        return self._firsts[lanes, fixed]

    def _ran(self, before: Snapshot, operands: Sequence[Array], examples: Array, fixed: int | None) -> list[Array]:
        """A segment, packed, on from there."""
        compiled = self.segment(before.pool, fixed)
        return list(compiled(*self.segments.legs.flat(before), *operands, examples))

    def _further(self, packed: Sequence[Array], arrays: Sequence[Array], pool: Pool, fixed: int | None) -> list[Array]:
        """Continue a run on such arrays after its first segment, `packed`, with nothing put aside so far.

        Return `ended`, the number of segments, and what is put aside of the further ones.
        """
        first = self._unpacked(self._without_tape(packed), pool).snapshot
        start = self._without_tape(packed), self.put_aside.nothing(first), self.backend.constant(1)
        return self._looped(start, self.operands(arrays), arrays[-1], pool, fixed)

    def _all(
        self, first: Snapshot, operands: Sequence[Array], examples: Array, fixed: int | None, packed: Sequence[Array]
    ) -> list[Array]:
        """Complete a run whose first segment, `packed`, has run: `ended`, the number of segments, `aside`."""
        start = self._added(first, packed, self.put_aside.nothing(first), self.backend.constant(0))
        return self._looped(start, operands, examples, first.pool, fixed)

    def _added(self, before: Snapshot, packed: Sequence[Array], aside: Aside, number: Array) -> _Carried:
        """Add a segment, which began there."""
        tape = packed[len(packed) - self.recorded :]
        return self._without_tape(packed), self.put_aside.added(aside, number, before, tape), number + 1

    def _looped(
        self, start: _Carried, operands: Sequence[Array], examples: Array, pool: Pool, fixed: int | None
    ) -> list[Array]:
        """The same of a run that goes on from there."""

        def more(carried: _Carried) -> _Carried:
            packed, aside, number = carried
            before = self._unpacked(packed, pool)
            grown = before.snapshot if fixed is not None else self.segments.grown(before.snapshot, before.lacking)
            return self._added(grown, self._ran(grown, operands, examples, fixed), aside, number)

        def goes_on(carried: _Carried) -> Array:
            return self._goes_on(self._unpacked(carried[0], pool), fixed)

        packed, aside, number = self.backend.while_loop(goes_on, more, start, seldom=True, stops=True)
        return [*self.ended(self._unpacked(packed, pool).snapshot), number, *aside]

    def _goes_on(self, now: Segment, fixed: int | None) -> Array:
        return now.goes_on if fixed is None else now.goes_on & ~now.lacking

    def ended(self, last: Snapshot) -> list[Array]:
        """Return the data of a run that has ended there.

        The capacity of its stacks, its counters and outputs, the `pointers`, and what is `told`.
        """
        pointers = [last.state[self.layout.pointer(name)] for name in self.pointers]
        capacity = self.backend.constant(0) + self.segments.legs.capacity(last)
        return [capacity, *last.counters.values(), *last.outputs.values(), *pointers, *self.told(last)]

    @cached_property
    def ends(self) -> int:
        """The number of arrays that `ended` returns."""
        loop = self.segments.legs.loop
        return 1 + len(loop.counter_specs) + len(self.layout.outputs) + len(self.pointers) + self.tells

    def begin(self, arrays: Sequence[Array], lanes: int | None, fixed: int | None) -> tuple[Snapshot, Sequence[Array]]:
        """Return the beginning of a run from its program's inputs, and the operands of its segments."""
        *given, capacity, every = arrays
        count, pool = len(self.layout.inputs), self.pool(arrays, lanes)
        first = self.segments.legs.begin(given[:count], pool, self._first(capacity, fixed), every)
        return first, self.operands(arrays)

    def told(self, last: Snapshot) -> list[Array]:
        """Return further statistics of a run beside its outcome."""
        return []

    def _first(self, capacity: Array, fixed: int | None) -> Any:
        """The capacity of the first stacks."""
        limits = self.segments.legs.limits
        if limits.roomy:
            return limits.largest_capacity
        return capacity if fixed is None else fixed

    def _without_tape(self, packed: Sequence[Array]) -> list[Array]:
        return list(packed[: len(packed) - self.recorded])

    def _unpacked(self, packed: Sequence[Array], pool: Pool) -> Segment:
        return self.segments.unpack([*packed, *self.segments.tapes.keys], pool)

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
