"""One segment of a taped run, on its way back: the log from its end to its beginning, each run of a block undone.

A turn of the loop goes through the active blocks in reverse order, under the guards "the log's next entry is of this
block": so one turn undoes a whole trip, and whatever the schedule was, the order is the log's. When all is undone, what
gradients by shared operands need of all rows together is pulled back, so many rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from pcbatch.ir.machine import Chunks, Piece, Program
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.tape import LANE, LOG, LOGGED, Tapes, residual_field
from pcbatch.runtime.adjoint.undo import Names, Undoing, keys
from pcbatch.runtime.backends.pieces import Leaves, Linear
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.rows import Rows

NEXT, LEFT = "next", "left"
"""The keys of the block whose run is to be undone next, -1 for none, and of how many rows of that run are left."""

Chunked = Callable[[Any], Program]
"""The program with the chunks in which its blocks run for so many lanes."""

Totals = dict[str, Array]
"""The gradients by shared operands so far, by key."""


@dataclass(frozen=True)
class Beside:
    """What the piece at `place` of a block gives beside gradients of its lanes, by key: see `pieces.Linear`."""

    number: int
    place: int
    linear: Linear

    @property
    def by_row(self) -> dict[str, TensorType]:
        """What is written for each row: the deltas, or, of a late piece, the seeds that they come from."""
        types = self.linear.seeds_of if self.linear.is_late else self.linear.deltas
        return {f"by row {self.number} {self.place} {n}": type_ for n, type_ in enumerate(types)}

    @property
    def sums(self) -> dict[str, TensorType]:
        """What is summed over all rows, run by run."""
        types = () if self.linear.is_late else self.linear.summed
        return {f"sum {self.number} {self.place} {n}": type_ for n, type_ in enumerate(types)}


class Replay:
    """Undoes segments of the runs of one program."""

    def __init__(self, tapes: Tapes, chunked: Chunked):
        self.chunked = chunked
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
        """The gradients by shared operands, by key."""
        return {
            key: type_
            for name in self.program.shared
            for key, type_ in self.keys_of(name)
            if type_ is not None and name in self.tapes.activity.shared
        }

    def keys_of(self, name: str) -> list[tuple[str, TensorType | None]]:
        """The key of the gradient by each leaf of a shared operand; no type where it has none."""
        return [(f"shared {name} {n}", leaf) for n, leaf in enumerate(self.tapes.shared_floats(name))]

    def segment(
        self, gradients: State, totals: Totals, tape: State, sound: Array, shared: Mapping[str, Leaves]
    ) -> tuple[State, Totals]:
        """The gradients of lanes as they are before the segment, and the totals with what it adds to them.

        `tape` is what the segment has recorded; `sound` bool `[lanes]`: the others have failed, before or after.
        """
        backend, lanes = self.backend, self.backend.lanes_of(sound)
        counts = {key: tape[key] for key in self.tapes.scalars}
        start = {**gradients, **counts, **self._last(tape, tape[LOGGED]), **self._nothing_beside(lanes)}
        chunks = [block.chunks for block in self.chunked(lanes).blocks]

        def turn(state: State) -> State:
            for number in self.order:
                state = self._guarded(number, state, tape, sound, shared, chunks[number])
            return state

        end = backend.while_loop(lambda state: state[LOGGED] > 0, turn, start)
        for number in self.tapes.blocks:
            for each in self.beside[number]:
                totals = self._pulled_back(each, end, tape, sound, shared, totals)
        return {key: end[key] for key in gradients}, totals

    def _last(self, tape: State, logged: Array) -> State:
        """The block of the last of so many entries of the log, no block if there are none, and its count."""
        backend = self.backend
        place = backend.where(logged > 0, logged - 1, logged)
        number, count = backend.unstack(backend.take(tape[LOG], place), 2)
        return {NEXT: backend.where(logged > 0, number, backend.constant(-1)), LEFT: count}

    def _nothing_beside(self, lanes: Any) -> State:
        found: State = {}
        for number, every in self.beside.items():
            length = self.tapes.length(self.tapes.blocks[number], lanes)
            for each in every:
                found |= {key: self.backend.zeros(length, type_) for key, type_ in each.by_row.items()}
                found |= {key: self.backend.zeros_of(type_) for key, type_ in each.sums.items()}
        return found

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

        Where the block runs in chunks, so many rows at a time, and on as long as runs of the block are the last; where
        most lanes are to be undone, all at once.
        """
        backend = self.backend
        by_row = [key for each in self.beside[number] for key in each.by_row]
        sums = [key for each in self.beside[number] for key in each.sums]
        counts = [self.tapes.blocks[number].used, LOGGED, NEXT, LEFT]
        changed = [*self.names[number].keys, *by_row, *sums, *counts]
        in_place = {*self.names[number].keys, *by_row}

        def undo(rows: Array | int, go: Array, before: Sequence[Array]) -> list[Array]:
            now = {**state, **dict(zip(changed, before, strict=True))}
            now = self._undone(number, now, tape, sound, shared, rows, go)
            return [now[key] for key in changed]

        def few(after: Sequence[Array]) -> Array:
            *_, following, left = after
            here = backend.equal(following, number)
            return here if chunks is None or chunks.whole is None else here & (left < chunks.whole)

        def turn(go: Array, before: Sequence[Array]) -> tuple[Array, list[Array]]:
            assert chunks is not None
            after = undo(chunks.rows, go, before)
            return few(after), after

        before = [state[key] for key in changed]
        after = before
        if chunks is not None:
            after = backend.repeated(few(before), turn, before)
        if chunks is None or chunks.whole is not None:
            *_, following, left = after
            here = backend.equal(following, number)
            here = here if chunks is None or chunks.whole is None else here & (left >= chunks.whole)
            lanes = backend.lanes_of(sound)
            stays = [key in in_place for key in changed]
            after = backend.guarded(here, lambda go, *before: undo(lanes, go, before), after, stays)
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
        """The state after the last `size` rows of the last run, which was of block `number`, or all, are undone."""
        backend, block = self.backend, self.tapes.blocks[number]
        used, left = state[block.used], state[LEFT]
        place = backend.lane_numbers(size)
        count = backend.where(left < size, left, left * 0 + size)
        live = backend.both(place >= size - count, go)
        # The rows of the segment's array end at `margin + used`.
        first = used + self.tapes.margin(backend.lanes_of(sound)) - size
        taped = {field: backend.rows_at(tape[block.key(field)], first, size) for field in block.fields}
        if self.tapes.context.spread_live:  # the last row is live
            source = backend.where(live, place, size - 1 + place * 0)
            taped = {field: backend.take(rows, source) for field, rows in taped.items()}
        rows = Rows(backend, taped[LANE], live & backend.take(sound, taped[LANE]))
        with backend.scope(self.program.blocks[number].label):
            undoing = Undoing(self.names[number], state, rows, taped, shared)
            found = {**state, **undoing.undo()}
        for each in self.beside[number]:
            given = undoing.seeds if each.linear.is_late else undoing.deltas
            for key, array in zip(each.by_row, given.get(each.place, ()), strict=False):
                found[key] = backend.with_rows(state[key], first, array)
            for key, part in zip(each.sums, undoing.parts.get(each.place, ()), strict=False):
                found[key] = state[key] + backend.sum_rows(part, rows.mask)
        logged = backend.where(left > count, state[LOGGED], state[LOGGED] - 1)
        last = self._last(tape, logged)
        left = backend.where(left > count, left - count, last[LEFT])
        return {**found, block.used: used - count, LOGGED: logged, NEXT: last[NEXT], LEFT: left}

    # -- all rows together ---------------------------------------------------------------------------------------------

    def _pulled_back(
        self, each: Beside, end: State, tape: State, sound: Array, shared: Mapping[str, Leaves], totals: Totals
    ) -> Totals:
        """`totals` with what a piece gives of all rows of the segment."""
        piece = self.program.blocks[each.number].body[each.place]
        assert isinstance(piece, Piece)
        operands = [shared[name] for name in piece.shared]
        sums = [end[key] for key in each.sums]
        names = [key for name in piece.shared for key, _ in self.keys_of(name)]
        if not each.sums and not each.by_row:
            return totals
        if not each.by_row:
            found = each.linear.pull_back([], [], sums, operands, sound)
            return _added(totals, names, found)
        block, backend = self.tapes.blocks[each.number], self.backend
        lanes, used = backend.lanes_of(sound), tape[block.used]
        length, margin = self.tapes.length(block, lanes), self.tapes.margin(lanes)
        keys = [key for key in names if key in totals]
        kept = [tape[block.key(LANE)], *self._residuals(each, tape), *(end[key] for key in each.by_row)]

        def some(
            at_once: Any, carried: tuple[Array, list[Array], list[Array]]
        ) -> tuple[Array, list[Array], list[Array]]:
            begun, sums, before = carried
            beyond = begun + at_once > length
            start = backend.where(beyond, begun * 0 + (length - at_once), begun)
            place = start + backend.lane_numbers(at_once)
            numbers, *arrays = [backend.rows_at(array, start, at_once) for array in kept]
            mask = (place >= begun) & (place < margin + used) & backend.take(sound, numbers)
            residuals, by_row = arrays[: len(each.linear.residuals)], arrays[len(each.linear.residuals) :]
            if each.linear.is_late:
                seeds = [by_row[place : place + 1] for place, _ in enumerate(by_row)]
                _, by_row, parts = each.linear.backward(residuals, operands, seeds, at_once)
                sums = [backend.sum_rows(part, mask) for part in parts]
            found = each.linear.pull_back(residuals, by_row, sums, operands, mask)
            after = _added(dict(zip(keys, before, strict=True)), names, found)
            none = [backend.zeros_of(type_) for type_ in each.sums.values()]  # they count once
            return begun + at_once, none, [after[key] for key in keys]

        state = (backend.constant(0) + margin, sums, [totals[key] for key in keys])
        for at_once, least in self._at_once(length, lanes):
            state = backend.while_loop(
                lambda carried, least=least: carried[0] + least <= margin + used, partial(some, at_once), state
            )
        return {**totals, **dict(zip(keys, state[2], strict=True))}

    def _at_once(self, length: Any, lanes: Any) -> list[tuple[Any, int]]:
        """How many rows are pulled back together, and of how many that are left: first many, then of the rest fewer."""
        if not isinstance(length, int):
            return [(lanes * self.tapes.sizes.batches, 1)]
        many, few = CPU.pulled, CPU.pulled // 4
        return [(many, many // 2), (few, 1)] if many <= length else [(min(few, length), 1)]

    def _residuals(self, each: Beside, tape: State) -> list[Array]:
        block = self.tapes.blocks[each.number]
        return [tape[block.key(residual_field(each.place, n))] for n, _ in enumerate(each.linear.residuals)]


def _added(totals: Totals, names: Sequence[str], found: Sequence[Sequence[Array | None]]) -> Totals:
    """`totals` with gradients by the leaves of operands, of these names."""
    more = zip(names, (leaf for leaves in found for leaf in leaves), strict=True)
    return {**totals, **{key: totals[key] + leaf for key, leaf in more if leaf is not None}}
