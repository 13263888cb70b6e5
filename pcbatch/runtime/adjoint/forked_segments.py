"""A taped run whose calls are forked as a sequence of segments, between which it may get more lanes.

A segment ends where a tape is full, and where lanes find no free ones, or no room on their stacks, and nobody can run.
Then the next begins with empty tapes, on more lanes or longer stacks if these are wanted, up to a limit of bytes. How
many lanes there are is known only when a segment runs: the same program runs on more.

Each chunk of a block adds its rows to the block's tape. Blocks run for lists of lanes, a chunk at a time, so a run of a
block leaves a chunk of rows at most, whatever the number of lanes; and how long a tape is to be follows from the number
of examples. A row says of which example it is, and, where a block forks or joins calls, which lanes have run them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pcbatch.ir.types import TensorType, leaves
from pcbatch.runtime.adjoint.segments import Segment, Segments, TapedExecution
from pcbatch.runtime.adjoint.tape import LOGGED, BlockTape, Sizes, Sources, Tapes, child_field
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Spec, State
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.fork_join import ForkedExecution
from pcbatch.runtime.machine.forking import GIVEN_UP, OWN, Forking
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.pool_sizing import MOST_GROWTH, grown, wanting
from pcbatch.runtime.machine.segments import Legs, Snapshot
from pcbatch.runtime.machine.state import GROWTH, ArraySpec
from pcbatch.runtime.machine.values import Rows

# -- tapes -------------------------------------------------------------------------------------------------------------


EXAMPLE = "example"
"""The field of the example that a row is of."""
APART = 16
"""Number of rows processed together where gradients are kept apart by example."""


class ForkedTapes(Tapes):
    """The tapes of one program that forks, with room for so many `rows` of a block in a segment, if these are small.

    `are_likely` says whether that is known from other runs, `size(number)` on how many rows a block runs at a time.
    """

    owner = EXAMPLE

    def __init__(
        self,
        context: Context,
        rows: int,
        size: Callable[[int], int],
        sizes: Sizes | None = None,
        sources: Sources | None = None,
        are_likely: bool = True,
    ):
        super().__init__(context, sizes, sources)
        self.most, self.size, self.are_likely = rows, size, are_likely

    def _more_fields(self, number: int) -> dict[str, TensorType]:
        one, active = TensorType("int32"), self.activity.variables
        fields = {EXAMPLE: one}
        for group in self.layout.groups:
            for slot, member in enumerate(group.members):
                if group.block == number and any(variable in active for variable, _ in member.call.given):
                    fields[child_field("forked", slot)] = one
                if group.join == number and any(name in active for name, _ in member.call.results):
                    fields[child_field("joined", slot)] = one
        return fields

    def rows(self, tape: BlockTape, lanes: Any) -> int:
        """Return the number of rows of a tape: at least two chunks."""
        widest = max(max(type_.bytes, 1) for type_ in tape.fields.values())
        return max(min(self.most, self.sizes.bytes // widest), 2 * self.size(tape.number))

    @cached_property
    def useful(self) -> int:
        """The largest number of rows for which any tape has room."""
        widest = (max(max(type_.bytes, 1) for type_ in tape.fields.values()) for tape in self.blocks.values())
        return max((self.sizes.bytes // each for each in widest), default=0)

    def are_short(self, lanes: Any) -> bool:
        """Return whether some tape is smaller than its limit."""
        return False

    def are_likely_enough(self, lanes: int) -> bool:
        """See `Tapes`: there are as many rows as runs before have had, or some."""
        return self.are_likely

    def margin(self, tape: BlockTape, lanes: Any) -> int:
        """See `Tapes`: no run of a block computes more rows than a chunk has."""
        return max(self.size(tape.number), APART)

    def specs(self, lanes: int | None) -> dict[str, Spec]:
        """See `Tapes`: all lengths are known."""
        return super().specs(0)

    def _entries(self, lanes: Any) -> int:
        return self.sizes.log + 1

    def apart_at_once(self, lanes: Any) -> int:
        """See `Tapes`."""
        return APART

    def has_room(self, tape: BlockTape, state: State, lanes: Any) -> Array:
        """Return a scalar bool: whether another chunk of so many lanes can be recorded."""
        fits = state[tape.used] + lanes <= self.rows(tape, lanes)
        return fits & (state[LOGGED] < self.sizes.log)


# -- recording ---------------------------------------------------------------------------------------------------------


class TapedForkedExecution(TapedExecution, ForkedExecution):
    """One run of a block for a chunk of lanes, `count` of them, which is recorded.

    Lanes of examples that are given up are kept with the others: their rows are left out with their examples. Where
    lanes can lack room on their stacks, those that do are not kept: `may_wait`.
    """

    def __init__(
        self,
        tapes: ForkedTapes,
        context: Context,
        number: int,
        state: State,
        shared: Mapping[str, Leaves],
        rows: Rows,
        count: Array,
        may_wait: bool,
    ):
        super().__init__(tapes, context, number, state, shared, rows)
        self.lanes_in_all, self.may_wait = count, may_wait

    @property
    def has_gaps(self) -> bool:
        """True if rows that have entered lie among others."""
        return self.may_wait

    def count(self) -> Array:
        """Return the number of rows kept."""
        return super().count() if self.may_wait else self.lanes_in_all

    def updates(self) -> State:
        """Keep the owner of each row, and for calls that are joined the lanes that have run them."""
        self.kept[EXAMPLE] = self.old(EXAMPLE)
        for slot in range(self.layout.slots):
            if child_field("joined", slot) in self.tape.fields:
                self.kept[child_field("joined", slot)] = self.old(f"child {slot}")
        return super().updates()

    def forked(self, now: State) -> State:
        """`now`, after the calls of the group have lanes, with these on the tape."""
        backend, tape = self.backend, self.tape
        start = now[tape.used] - self.count() + self.tapes.margin(tape, None)
        found = dict(now)
        for slot in range(self.layout.slots):
            if (field := child_field("forked", slot)) in tape.fields:
                lanes = self.rows.take(now[f"child {slot}"])
                if self.has_gaps:
                    lanes = backend.load(lanes, [], backend.listed(self.entered)[0])
                found[tape.key(field)] = backend.with_rows(now[tape.key(field)], start, lanes)
        return found


class TapedForking(Forking):
    """The trips of a program that forks, recorded on `tapes`; they end where a tape is full, too."""

    def __init__(self, context: Context, costs: Sequence[float], pool: Pool, tapes: ForkedTapes):
        super().__init__(context, costs, pool)
        self.tapes = tapes

    @property
    def can_be_empty(self) -> bool:
        """False: a chunk writes all of its rows onto a tape that may have no room for them."""
        return False

    def _tape(self, number: int) -> BlockTape | None:
        return self.tapes.blocks.get(number)

    def keys(self, number: int) -> list[str]:
        """Return the keys, with those of the tape."""
        tape = self._tape(number)
        return sorted([*super().keys(number), *(tape.keys if tape else ())])

    def goes_on(self, state: State) -> Array:
        """Return whether a lane can run, and there is room on every tape for a chunk."""
        return super().goes_on(state) & self.have_room(state)

    def have_room(self, state: State) -> Array:
        """Return a scalar bool: whether there is room on every tape for another chunk."""
        found = self.backend.constant(True)
        for number, tape in self.tapes.blocks.items():
            found = found & self.tapes.has_room(tape, state, self.size(number))
        return found

    def fits(self, number: int, now: State) -> Array | None:
        """See `Forking`."""
        tape = self._tape(number)
        return None if tape is None else self.tapes.has_room(tape, now, self.size(number))

    def execution(
        self, number: int, state: State, shared: Mapping[str, Leaves], rows: Rows, count: Array
    ) -> ForkedExecution:
        """Return a run of a block, recorded if it is active."""
        if self._tape(number) is None:
            return super().execution(number, state, shared, rows, count)
        may_wait = self.runners[number].can_lack_room
        return TapedForkedExecution(self.tapes, self.context, number, state, shared, rows, count, may_wait)

    def have_begun(self, execution: ForkedExecution, now: State) -> State:
        """See `Forking`."""
        return execution.forked(now) if isinstance(execution, TapedForkedExecution) else now


# -- segments ----------------------------------------------------------------------------------------------------------


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
