"""One segment of a taped run, on its way back: the log from its end to its beginning, each run of a block undone.

A turn of the loop goes through the active blocks in reverse order, under the guards "the log's next entry is of this
block": so one turn undoes a whole trip, and whatever the schedule was, the order is the log's. When all is undone, what
gradients by shared operands need of all rows together is pulled back, so many rows at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.beside import Beside, residuals
from pcbatch.runtime.adjoint.lookups import Lookups
from pcbatch.runtime.adjoint.tape import LANE, LOG, LOGGED, Tapes
from pcbatch.runtime.adjoint.undo import Names, Undoing, keys
from pcbatch.runtime.backends.pieces import Apart, Leaves
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.machine.rows import Rows

Totals = dict[str, Array]
"""The gradients by shared operands so far, by key."""


class Replay:
    """Undoes segments of the runs of one program; gradients by shared operands are sums of all lanes, or of each."""

    def __init__(self, tapes: Tapes, *, by_lane: bool = False):
        self.by_lane = by_lane
        self.tapes, self.backend, self.program = tapes, tapes.backend, tapes.program
        order = self.program.order or range(len(self.program.blocks))
        self.order = [number for number in reversed(order) if number in tapes.blocks]

    @cached_property
    def names(self) -> dict[int, Names]:
        """How each active block uses its variables."""
        return {number: Names(self.tapes, tape) for number, tape in self.tapes.blocks.items()}

    @cached_property
    def beside(self) -> dict[int, list[Beside]]:
        """By block, what its pieces give beside."""
        tapes = self.tapes.blocks.items()
        return {n: [Beside(n, place, linear) for place, linear in tape.linear.items()] for n, tape in tapes}

    @cached_property
    def gradients(self) -> dict[str, tuple[TensorType, bool]]:
        """The gradients of lanes, by key: what each holds for a lane, and whether of each entry of a stack."""
        stacks = set(self.tapes.layout.all_stacks)
        names = sorted(self.tapes.activity.variables & self.program.storage.keys())
        return {key: (type_, key in stacks) for name in names for key, type_ in keys(self.tapes, name)}

    @cached_property
    def totals(self) -> dict[str, TensorType]:
        """The gradients by shared operands that are sums of rows, by key: what each holds, of all lanes or for each."""
        return {
            key: type_
            for name in self.program.shared
            for key, type_ in self.tapes.shared_keys(name)
            if type_ is not None and name in self.tapes.activity.shared and key not in self.lookups.by_key
        }

    @cached_property
    def lookups(self) -> Lookups:
        """Those by tables that are looked up in alone."""
        return Lookups(self.tapes, {} if self.by_lane else self.beside)

    def nothing(self, type_: TensorType, lanes: Any) -> Array:
        """No gradient by a shared operand: of all lanes, or of each."""
        return self.backend.zeros(lanes, type_) if self.by_lane else self.backend.zeros_of(type_)

    def segment(
        self, gradients: State, totals: Totals, tape: State, sound: Array, shared: Mapping[str, Leaves]
    ) -> tuple[State, Totals, list[Array]]:
        """The gradients of lanes as they are before the segment, the totals with what it adds to them, and lookups.

        `tape` is what the segment has recorded; `sound` bool `[lanes]`: the others have failed, before or after.
        """
        backend, lanes = self.backend, self.backend.lanes_of(sound)
        counts = {key: tape[key] for key in self.tapes.scalars}
        start = {**gradients, **counts, **self._nothing_beside(lanes)}

        def turn(state: State) -> State:
            for number in self.order:
                state = self._guarded(number, state, tape, sound, shared)
            return state

        end = backend.while_loop(lambda state: state[LOGGED] > 0, turn, start)
        for number in self.tapes.blocks:
            for each in self.beside[number]:
                totals = self._pulled_back(each, end, tape, sound, shared, totals)
        return {key: end[key] for key in gradients}, totals, self.lookups.of_segment(end, tape, sound, shared)

    def _nothing_beside(self, lanes: Any) -> State:
        found: State = {}
        for number, every in self.beside.items():
            length = self.tapes.length(self.tapes.blocks[number], lanes)
            for each in every:
                found |= {key: self.backend.zeros(length, type_) for key, type_ in each.deltas.items()}
                found |= {key: self.nothing(type_, lanes) for key, type_ in each.sums.items()}
        return found

    # -- one run of a block --------------------------------------------------------------------------------------------

    def _guarded(self, number: int, state: State, tape: State, sound: Array, shared: Mapping[str, Leaves]) -> State:
        """Undo the last run of the log if it was of this block."""
        backend, block = self.backend, self.tapes.blocks[number]
        # The first entry where none is left: nobody looks at its count then.
        logged = state[LOGGED]
        last = backend.where(logged > 0, logged - 1, logged)
        ran, count = backend.unstack(backend.take(tape[LOG], last), 2)
        deltas = [key for each in self.beside[number] for key in each.deltas]
        sums = [key for each in self.beside[number] for key in each.sums]
        changed = [*self.names[number].keys, *deltas, *sums, block.used, LOGGED]
        in_place = {*self.names[number].keys, *deltas}

        def undo(go: Array, *before: Array) -> list[Array]:
            now = {**state, **dict(zip(changed, before, strict=True))}
            now = self._undone(number, now, tape, sound, shared, count, go)
            return [now[key] for key in changed]

        here = (logged > 0) & backend.equal(ran, number)
        before = [state[key] for key in changed]
        after = backend.guarded(here, undo, before, [key in in_place for key in changed])
        return {**state, **dict(zip(changed, after, strict=True))}

    def _undone(
        self,
        number: int,
        state: State,
        tape: State,
        sound: Array,
        shared: Mapping[str, Leaves],
        count: Array,
        go: Array,
    ) -> State:
        """The state after the last run of block `number`, of `count` lanes, is undone."""
        backend, block = self.backend, self.tapes.blocks[number]
        lanes = backend.lanes_of(sound)
        used = state[block.used]
        place = backend.lane_numbers(lanes)
        live = backend.both(place >= lanes - count, go)
        # The rows of the segment's array end at `lanes + used`.
        taped = {field: backend.rows_at(tape[block.key(field)], used, lanes) for field in block.fields}
        if self.tapes.context.spread_live:  # the last row is live
            source = backend.where(live, place, lanes - 1 + place * 0)
            taped = {field: backend.take(rows, source) for field, rows in taped.items()}
        rows = Rows(backend, taped[LANE], live & backend.take(sound, taped[LANE]))
        with backend.scope(self.program.blocks[number].label):
            undoing = Undoing(self.names[number], state, rows, taped, shared)
            found = {**state, **undoing.undo()}
        for each in self.beside[number]:
            for key, delta in zip(each.deltas, undoing.deltas.get(each.place, ()), strict=False):
                found[key] = backend.with_rows(state[key], used, delta)
            for key, part in zip(each.sums, undoing.parts.get(each.place, ()), strict=False):
                found[key] = self._summed(state[key], part, rows)
        return {**found, block.used: used - count, LOGGED: state[LOGGED] - 1}

    def _summed(self, total: Array, part: Array, rows: Rows) -> Array:
        """A total with what rows add to it."""
        if self.by_lane:
            return rows.put(total, rows.mask, rows.take(total) + part)
        return total + self.backend.sum_rows(part, rows.mask)

    # -- all rows together ---------------------------------------------------------------------------------------------

    def _pulled_back(
        self, each: Beside, end: State, tape: State, sound: Array, shared: Mapping[str, Leaves], totals: Totals
    ) -> Totals:
        """`totals` with what a piece gives of all rows of the segment."""
        piece = self.program.blocks[each.number].body[each.place]
        assert isinstance(piece, Piece)
        operands = [shared[name] for name in piece.shared]
        sums = [end[key] for key in each.sums]
        names = [key for name in piece.shared for key, _ in self.tapes.shared_keys(name)]
        left_out, lanes = self.lookups.numbers(each), self.backend.lanes_of(sound)
        if not each.sums and len(each.deltas) == len(left_out):
            return totals
        if len(each.deltas) == len(left_out):
            apart = Apart(None, lanes) if self.by_lane else None
            found = each.linear.pull_back([], [], sums, operands, sound, left_out, apart)
            return _added(totals, names, found)
        block = self.tapes.blocks[each.number]
        length, used = self.tapes.length(block, lanes), tape[block.used]
        at_once = lanes if self.by_lane else lanes * self.tapes.sizes.batches  # by lane a row takes much more
        keys = [key for key in names if key in totals]

        def some(carried: tuple[Array, list[Array], list[Array]]) -> tuple[Array, list[Array], list[Array]]:
            begun, sums, before = carried
            beyond = begun + at_once > length
            start = self.backend.where(beyond, begun * 0 + (length - at_once), begun)
            place = start + self.backend.lane_numbers(at_once)
            kept, deltas, numbers = (
                [self.backend.rows_at(array, start, at_once) for array in arrays]
                for arrays in (
                    residuals(self.tapes, each, tape),
                    [end[key] for key in each.deltas],
                    [tape[block.key(LANE)]],
                )
            )
            mask = (place >= begun) & (place < lanes + used) & self.backend.take(sound, numbers[0])
            apart = Apart(numbers[0], lanes) if self.by_lane else None
            found = each.linear.pull_back(kept, deltas, sums, operands, mask, left_out, apart)
            after = _added(dict(zip(keys, before, strict=True)), names, found)
            none = [self.nothing(type_, lanes) for type_ in each.sums.values()]  # they count once
            return begun + at_once, none, [after[key] for key in keys]

        begin = self.backend.constant(0) + lanes
        state = (begin, sums, [totals[key] for key in keys])
        _, _, after = self.backend.while_loop(lambda carried: carried[0] < lanes + used, some, state)
        return {**totals, **dict(zip(keys, after, strict=True))}


def _added(totals: Totals, names: Sequence[str], found: Sequence[Sequence[Array | None]]) -> Totals:
    """`totals` with gradients by the leaves of operands, of these names."""
    more = zip(names, (leaf for leaves in found for leaf in leaves), strict=True)
    return {**totals, **{key: totals[key] + leaf for key, leaf in more if leaf is not None and key in totals}}
