"""One segment of a taped run, on its way back: the log from its end to its beginning, each run of a block undone.

A turn of the loop goes through the active blocks in reverse order, under the guards "the log's next entry is of this
block": so one turn undoes a whole trip, and whatever the schedule was, the order is the log's. What can be done for
all rows together is done when all is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from pcbatch.ir.machine import Chunks, Program
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.block_vjp import BlockVjp
from pcbatch.runtime.adjoint.block_vjp_info import Names, keys
from pcbatch.runtime.adjoint.shared_operand_vjp import BatchedPullback, Lookups, SharedOperandVjp, Totals, summed
from pcbatch.runtime.adjoint.tape import LANE, LOG, LOGGED, Tapes
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, State, repeated
from pcbatch.runtime.machine.loop import TRIPS
from pcbatch.runtime.machine.values import Rows

NEXT, LEFT = "next", "left"
"""The keys of the block whose run is to be undone next, -1 for none, and of how many rows of that run are left."""

Chunked = Callable[[Any], Program]
"""The program with the chunks in which its blocks run for so many lanes."""


class Replay:
    """Undoes segments of the runs of one program; gradients by shared operands are sums of all lanes, or of each.

    For so many lanes as many trips as `together` says are undone between two looks, every block in each, unguarded but
    for those that run in chunks, and those with pieces that are `dear` for so many.
    With `sums` those by tables that are looked up in are sums, too. `order` is that of blocks in a trip, if it is not
    the program's.
    """

    def __init__(
        self,
        tapes: Tapes,
        chunked: Chunked,
        *,
        by_lane: bool = False,
        sums: bool = False,
        order: Sequence[int] | None = None,
        together: Callable[[Any], int] = lambda lanes: 0,
        dear: Callable[[Any], Sequence[Collection[int]]] = lambda lanes: (),
    ):
        self.chunked, self.by_lane, self.sums, self.together_for = chunked, by_lane, sums, together
        self.dear = dear
        self.tapes, self.backend, self.program = tapes, tapes.backend, tapes.program
        order = order or self.program.order or range(len(self.program.blocks))
        self.order = [number for number in reversed(order) if number in tapes.blocks]

    @cached_property
    def names(self) -> dict[int, Names]:
        """The use of variables by each active block."""
        return {number: Names(self.tapes, tape) for number, tape in self.tapes.blocks.items()}

    @cached_property
    def beside(self) -> dict[int, list[SharedOperandVjp]]:
        """The results of pieces beside their lanes' gradients, by block."""
        tapes = self.tapes.blocks.items()
        return {n: [SharedOperandVjp(n, place, linear) for place, linear in tape.linear.items()] for n, tape in tapes}

    @cached_property
    def gradients(self) -> dict[str, tuple[TensorType, bool]]:
        """The gradients of lanes, by key: their contents for a lane, or for each entry of a stack."""
        stacks = set(self.tapes.layout.all_stacks)
        names = sorted(self.tapes.activity.variables & self.program.storage.keys())
        return {key: (type_, key in stacks) for name in names for key, type_ in keys(self.tapes, name)}

    @cached_property
    def totals(self) -> dict[str, TensorType]:
        """The gradients by shared operands that are sums of rows, by key: their contents, of all lanes or for each."""
        return {
            key: type_
            for name in self.program.shared
            for key, type_ in self.tapes.shared_keys(name)
            if type_ is not None and name in self.tapes.activity.shared and key not in self.lookups.by_key
        }

    @cached_property
    def lookups(self) -> Lookups:
        """The lookups in tables that nothing else reads."""
        return Lookups(self.tapes, {} if self.by_lane or self.sums else self.beside)

    @cached_property
    def together(self) -> BatchedPullback:
        """The work for all rows of a segment at its end."""
        return BatchedPullback(self.tapes, self.lookups, by_lane=self.by_lane)

    def nothing(self, type_: TensorType, lanes: Any) -> Array:
        """Return the zero gradient by a shared operand: of all lanes, or of each."""
        return self.together.nothing(type_, lanes)

    def segment(
        self, gradients: State, totals: Totals, tape: State, sound: Array, shared: Mapping[str, Leaves]
    ) -> tuple[State, Totals, list[Array]]:
        """The gradients of lanes as they are before the segment, the totals with what it adds to them, and lookups.

        `tape` is what the segment has recorded; `sound` bool `[lanes]`: the others have failed, before or after.
        """
        backend, lanes = self.backend, self.backend.lanes_of(sound)
        counts = {key: tape[key] for key in self.tapes.scalars}
        start = {**gradients, **counts, **self._last(tape, tape[LOGGED]), **self._nothing_beside(tape, lanes)}
        chunks = [block.chunks for block in self.chunked(lanes).blocks]

        together = self.together_for(lanes)
        if together:  # what is dear runs in a loop of its own, which carries gradients in place, for all lanes at once
            dear = self.dear(lanes)
            chunks = [Chunks(lanes) if pieces and not each else each for each, pieces in zip(chunks, dear, strict=True)]

        def turn(state: State) -> State:
            for number in self.order:
                if together and chunks[number] is None:
                    is_next = backend.equal(state[NEXT], number)
                    state = self._undone(number, state, tape, sound, shared, lanes, is_next)
                else:
                    state = self._guarded(number, state, tape, sound, shared, chunks[number])
            return state

        def look(state: State) -> State:
            begun = (backend.constant(0), state)
            with backend.scope(f"{TRIPS}_{together}"):
                return backend.while_loop(
                    lambda each: each[0] < together, lambda each: (each[0] + 1, turn(each[1])), begun
                )[1]

        with backend.scope(TRIPS):
            end = backend.while_loop(lambda now: now[LOGGED] > 0, look if together else turn, start, stops=True)
        for each in (each for number in self.tapes.blocks for each in self.beside[number]):
            if each.linear.is_late:
                end, totals = self.together.late(each, end, tape, sound, shared, totals)
            else:
                totals = self.together.pulled_back(each, end, tape, sound, shared, totals)
        return {key: end[key] for key in gradients}, totals, self.lookups.of_segment(end, tape, sound, shared)

    def _last(self, tape: State, logged: Array) -> State:
        """The block of the last of so many entries of the log, no block if there are none, and its count."""
        backend = self.backend
        place = backend.where(logged > 0, logged - 1, logged)
        number, count = backend.unstack(backend.load(tape[LOG], [], place), 2)
        return {NEXT: backend.where(logged > 0, number, backend.constant(-1)), LEFT: count}

    def _nothing_beside(self, tape: State, lanes: Any) -> State:
        found: State = {}
        for number, every in self.beside.items():
            length = self.backend.lanes_of(tape[self.tapes.blocks[number].key(LANE)])
            for each in every:
                found |= {key: self.backend.zeros(length, type_) for key, type_ in each.by_row.items()}
                sums = {} if each.linear.is_late else each.sums
                found |= {key: self.nothing(type_, lanes) for key, type_ in sums.items()}
        return dict(zip(found, self.backend.made_apart([*found.values()], tape[LOGGED]), strict=True))

    # -- one run of a block --------------------------------------------------------------------------------------------

    def _guarded(
        self,
        number: int,
        state: State,
        tape: State,
        sound: Array,
        shared: Mapping[str, Leaves],
        chunks: Chunks | None,
    ) -> State:
        """Undo the last run of the log if it was of this block.

        Where the block runs in chunks, so many rows at a time, and on as long as runs of the block are the last. Also
        where it has run for most lanes at once: of an LSTM of 256 cells a row costs the same in chunks of 8 and of 64,
        and without the code for all lanes the first step takes 5.4 s, not 6.5.
        """
        backend = self.backend
        by_row = [key for each in self.beside[number] for key in each.by_row]
        sums = [key for each in self.beside[number] if not each.linear.is_late for key in each.sums]
        counts = [self.tapes.blocks[number].used, LOGGED, NEXT, LEFT]
        changed = [*self.names[number].keys, *by_row, *sums, *counts]
        in_place = {*self.names[number].keys, *by_row}

        def undo(rows: Array | int, go: Array, before: Sequence[Array]) -> list[Array]:
            now = {**state, **dict(zip(changed, before, strict=True))}
            now = self._undone(number, now, tape, sound, shared, rows, go)
            return [now[key] for key in changed]

        def turn(go: Array, before: Sequence[Array]) -> tuple[Array, list[Array]]:
            assert chunks is not None
            after = undo(chunks.rows, go, before)
            return is_next(after), after

        def is_next(arrays: Sequence[Array]) -> Array:
            return backend.equal(arrays[-2], number)

        before = [state[key] for key in changed]
        if chunks is not None:
            after = repeated(backend, is_next(before), turn, before)
        else:
            lanes, stays = backend.lanes_of(sound), [key in in_place for key in changed]
            after = backend.guarded(is_next(before), lambda go, *before: undo(lanes, go, before), before, stays)
        return {**state, **dict(zip(changed, after, strict=True))}

    def _undone(
        self,
        number: int,
        state: State,
        tape: State,
        sound: Array,
        shared: Mapping[str, Leaves],
        size: Array | int,
        go: Array,
    ) -> State:
        """The state after the last `size` rows of the last run, or all, are undone.

        That run was of block `number` where the scalar `go` holds; else nothing is changed.
        """
        backend, block = self.backend, self.tapes.blocks[number]
        used, left = state[block.used], state[LEFT]
        place = backend.lane_numbers(size)
        count = backend.where(left < size, left, left * 0 + size)
        count = backend.where(go, count, count * 0)
        live = backend.both(place >= size - count, go)
        # The rows of the segment's array end at `margin + used`.
        first = used + self.tapes.margin(block, backend.lanes_of(sound)) - size
        taped = {field: backend.rows_at(tape[block.key(field)], first, size) for field in block.fields}
        if self.tapes.context.spread_live:  # the last row is live
            source = backend.where(live, place, size - 1 + place * 0)
            taped = {field: backend.load(rows, [], source) for field, rows in taped.items()}
        owners = taped[self.tapes.owner]
        rows = Rows(backend, taped[LANE], live & backend.load(sound, [], owners))
        with backend.scope(self.program.blocks[number].label):
            undoing = BlockVjp(self.names[number], state, rows, taped, shared)
            found = {**state, **undoing.undo()}
        for each in self.beside[number]:
            given = undoing.seeds if each.linear.is_late else undoing.deltas
            for key, array in zip(each.by_row, given.get(each.place, ()), strict=False):
                found[key] = backend.with_rows(state[key], first, array)
            for key, part in zip(each.sums, undoing.parts.get(each.place, ()), strict=False):
                taking_part = Rows(backend, owners, undoing.taking_part(each.place))
                found[key] = summed(backend, state[key], part, taking_part, by_lane=self.by_lane)
        is_undone = backend.both(go, left <= count)
        logged = backend.where(is_undone, state[LOGGED] - 1, state[LOGGED])
        last = self._last(tape, logged)
        left = backend.where(is_undone, last[LEFT], left - count)
        following = backend.where(is_undone, last[NEXT], state[NEXT])
        return {**found, block.used: used - count, LOGGED: logged, NEXT: following, LEFT: left}
