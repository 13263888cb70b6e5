"""A taped run whose calls are forked as a sequence of segments, between which it may get more lanes.

A segment ends where a tape is full, and where lanes find no free ones, or no room on their stacks, and nobody can run.
Then the next begins with empty tapes, on more lanes or longer stacks if these are wanted, up to a limit of bytes. How
many lanes there are is known only when a segment runs: the same program runs on more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.adjoint.forks.record import TapedForking
from pcbatch.runtime.adjoint.forks.tape import ForkedTapes
from pcbatch.runtime.adjoint.segments import Segment, Segments
from pcbatch.runtime.backends.protocol import Array, Spec, State
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.forking import GIVEN_UP, OWN
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.pool_sizing import MOST_GROWTH, grown, wanting
from pcbatch.runtime.machine.segments import Legs, Snapshot
from pcbatch.runtime.machine.state import GROWTH, ArraySpec

TOLD = "told"
"""The key of a run's statistics. They are int32: its calls that were forked, its lanes at most, trips short of some."""


class FlatLegs(Legs):
    """Legs whose snapshots have the lists of lanes, too; inputs by example come before shared operands."""

    @property
    def keys(self) -> list[str]:
        """The keys of a state, in the order in which it is passed on."""
        return [*self.layout.arrays, *OWN, TOLD]

    @property
    def operand_specs(self) -> list[Spec]:
        """The dtypes and shapes of all that a segment takes beside a snapshot."""
        shared = [leaf for name in self.program.shared for leaf in leaves(self.program.shared_types[name])]
        examples = self.example_specs(None)
        return [*(examples[key] for key in self.layout.by_example), *((leaf.dtype, leaf.shape) for leaf in shared)]

    def by_example(self, operands: Sequence[Array]) -> State:
        """The inputs by example, by key."""
        return dict(zip(self.layout.by_example, operands, strict=False))

    def operands(self, shared: Sequence[Array]) -> dict[str, list[Array]]:
        """The leaves of each shared operand, by name."""
        return super().operands(shared[len(self.layout.by_example) :])

    def flat(self, snapshot: Snapshot) -> list[Array]:
        """See `Legs`."""
        counters = (snapshot.counters[key] for key in self.loop.counter_specs)
        return [*(snapshot.state[key] for key in self.keys), *counters]

    def snapshot(self, remaining: Iterator[Array], pool: Pool) -> Snapshot:
        """See `Legs`."""
        state = {key: next(remaining) for key in self.keys}
        return Snapshot(pool, state, {key: next(remaining) for key in self.loop.counter_specs})

    def specs(self, pool: Pool, capacity: int | None) -> list[Spec]:
        """See `Legs`; how many lanes there are is never known."""
        lists = len(self.program.blocks) + 3
        own: list[Spec] = [("int32", (None,)), ("int32", (lists,)), ("int32", (pool.static.examples,))]
        lanes = self.lane_specs(None, capacity)
        found = [*(lanes[key] for key in self.layout.arrays), *own, ("int32", (3,))]
        return [*found, *self.loop.counter_specs.values()]


class ForkedSegments(Segments):
    """The segments of the runs of one program that forks; lanes may take so many bytes in all, `limit`."""

    def __init__(self, context: Context, tapes: ForkedTapes, legs: FlatLegs, limit: int):
        self.context, self.backend, self.tapes, self.limit = context, context.backend, tapes, limit
        self.layout = context.layout
        self.legs: FlatLegs = legs

    @property
    def keys(self) -> Sequence[str]:
        """See `Segments`."""
        return self.legs.keys

    @property
    def held(self) -> list[ArraySpec]:
        """The contents of each kind of array for a lane."""
        lists = ArraySpec(TensorType("int32", (len(self.context.program.blocks) + 3,)))
        return [*self.layout.arrays.values(), lists]

    @property
    def changed(self) -> set[str]:
        """See `Segments`."""
        return {*self.keys}

    def lanes(self, snapshot: Snapshot) -> Any:
        """See `Segments`."""
        return self.backend.lanes_of(snapshot.state["pc"])

    def _trips(self, lanes: Any, examples: Any) -> TapedForking:
        assert isinstance(self.tapes, ForkedTapes)
        return TapedForking(self.context, self.legs.loop.row_costs, Pool(lanes, examples), self.tapes)

    def begin(self, inputs: State, pool: Pool, capacity: Any, examples: Array) -> Snapshot:
        """A run of so many `examples` in a pool that has not begun; there may be room for more."""
        backend, layout, lanes, room = self.backend, self.layout, pool.lanes, pool.examples
        trips, first = self._trips(lanes, room), backend.constant(0)
        state = trips.new_lanes(lanes, capacity, examples)
        numbers = backend.lane_numbers(lanes)
        state["example"] = backend.where(numbers < examples, numbers, numbers * 0)
        for name in (name for name in self.context.program.parameters if layout.storage(name) != "example"):
            for key, top in zip(layout.keys("input", name), layout.tops(name), strict=True):
                state[top] = backend.with_rows(state[top], first, inputs[key])
        given_up = backend.lane_numbers(room) * 0
        state |= {**trips.lists.first(examples), GIVEN_UP: given_up, TOLD: backend.stack([first, first, first])}
        return Snapshot(Pool(None, room), state, self.legs.loop.start())

    def segment(self, snapshot: Snapshot, shared: Sequence[Array], examples: Array) -> Segment:
        """See `Segments`; `lacking` is the number of lanes and the capacity of stacks of the next one."""
        backend, legs = self.backend, self.legs
        lanes, state = self.lanes(snapshot), {key: snapshot.state[key] for key in self.keys}
        told = state.pop(TOLD)
        trips = self._trips(lanes, backend.lanes_of(state[GIVEN_UP]))
        blank = self.tapes.blank(lanes, examples)
        after, counters, report = trips.run(
            {**state, **blank}, legs.by_example(shared), legs.operands(shared), snapshot.counters
        )
        tape = {key: after.pop(key) for key in blank}
        forked, most, short, can_run, _, _ = backend.unstack(report, 6)
        forked_before, most_before, short_before = backend.unstack(told, 3)
        most = backend.where(most > most_before, most, most_before)
        after[TOLD] = backend.stack([forked + forked_before, most, short + short_before])
        size = self._next_size(snapshot, after, trips, can_run)
        now = backend.stack([backend.constant(0) + lanes, backend.constant(0) + legs.capacity(snapshot)])
        goes_on = (can_run > 0) | backend.any(size > now)
        return Segment(
            replace(snapshot, state=after, counters=counters, outputs=trips.outputs(after)), tape, goes_on, size
        )

    def _next_size(self, snapshot: Snapshot, state: State, trips: TapedForking, can_run: Array) -> Array:
        """Return the lanes and the capacity of stacks with which the run is to go on: int32 `[2]`."""
        backend, most = self.backend, self.legs.limits.largest_capacity
        lanes = backend.constant(0) + self.lanes(snapshot)
        capacity = backend.constant(0) + self.legs.capacity(snapshot)
        wants_lanes, wants_stacks = wanting(state, trips)
        nobody_runs = backend.equal(can_run, 0)
        longer = backend.where(capacity < most // GROWTH, capacity * GROWTH, backend.constant(most))
        affordable = lanes <= self._most(longer, trips.examples)
        capacity = backend.where(nobody_runs & wants_stacks & affordable, longer, capacity)
        limit = self._most(capacity, trips.examples)
        more = backend.where(lanes < limit // MOST_GROWTH, lanes * MOST_GROWTH, limit)
        lanes = backend.where(nobody_runs & wants_lanes & (more > lanes), more, lanes)
        return backend.stack([lanes, capacity])

    def _most(self, capacity: Array, examples: Any) -> Array:
        """Return the maximal number of lanes for stacks of this capacity: at least one for each example."""
        backend = self.backend
        tops, entry = (
            sum(each.type.bytes for each in self.held if each.stacked is stacked) for stacked in (False, True)
        )
        # Of more than 2^31 bytes there is none.
        found = backend.constant(min(self.limit, 2**31 - 1)) // (backend.constant(tops) + entry * (capacity + 1))
        least = backend.constant(0) + examples
        return backend.where(found > least, found, least)

    def grown(self, snapshot: Snapshot, lacking: Array) -> Snapshot:
        """The same run, on so many lanes and on stacks of such a capacity as the segment before has said."""
        backend = self.backend
        lanes, capacity = backend.unstack(lacking, 2)
        before = [snapshot.state[key] for key in self.keys]
        now = backend.stack(
            [backend.constant(0) + self.lanes(snapshot), backend.constant(0) + self.legs.capacity(snapshot)]
        )

        def more() -> list[Array]:
            trips = self._trips(self.lanes(snapshot), backend.lanes_of(snapshot.state[GIVEN_UP]))
            after = grown(snapshot.state, trips, lanes, capacity)
            return [after[key] for key in self.keys]

        after = backend.cond(backend.any(lacking > now), more, before)
        return replace(snapshot, state=dict(zip(self.keys, after, strict=True)))
