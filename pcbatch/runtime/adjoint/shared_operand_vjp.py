"""Gradients by shared operands: the work at the end of a segment for all its rows, so many at a time.

Late pieces are undone, and what gradients by shared operands need of all rows together is pulled back: of late pieces
right away, some rows after the other, so that what is pulled back is nowhere kept for all.

Of tables of which a run has only looked up rows these are the rows and their numbers, and no sum over all rows. A
table that is looked up in alone has as its gradient what each lookup gives back, as TensorFlow's `tf.gather` has it.
Where gradients come to it in another way, too, one sum is made of all, as TensorFlow does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.tape import LANE, Tapes, residual_field
from pcbatch.runtime.backends.pieces import Apart, Leaves, Linear
from pcbatch.runtime.backends.protocol import Array, Backend, Spec, State
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.values import Rows

# -- results of pieces -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SharedOperandVjp:
    """The results of the piece at `place` of a block beside its lanes' gradients, by key: see `pieces.Linear`."""

    number: int
    place: int
    linear: Linear

    @property
    def by_row(self) -> dict[str, TensorType]:
        """The types written for each row when it is undone: the deltas, or, of a late piece, the seeds behind them."""
        if not self.linear.is_late:
            return self.deltas
        return {f"seed {self.number} {self.place} {n}": type_ for n, type_ in enumerate(self.linear.seeds_of)}

    @property
    def deltas(self) -> dict[str, TensorType]:
        """The deltas of each row, for gradients by operands that it meets in a product or looks up rows of."""
        return {f"delta {self.number} {self.place} {n}": type_ for n, type_ in enumerate(self.linear.deltas)}

    @property
    def sums(self) -> dict[str, TensorType]:
        """The types of sums over all rows."""
        return {f"sum {self.number} {self.place} {n}": type_ for n, type_ in enumerate(self.linear.summed)}


def residuals(tapes: Tapes, each: SharedOperandVjp, tape: State) -> list[Array]:
    """Return the residuals that a segment has kept of the rows of a piece."""
    block = tapes.blocks[each.number]
    return [tape[block.key(residual_field(each.place, n))] for n, _ in enumerate(each.linear.residuals)]


# -- sparse gradients --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lookup:
    """A place of a program at which rows of a table are looked up: the delta of this `number` of a piece."""

    each: SharedOperandVjp
    number: int


class Lookups:
    """The lookups of one program; `beside` has its pieces' results, by block, unless sums are wanted anyway."""

    def __init__(self, tapes: Tapes, beside: Mapping[int, Sequence[SharedOperandVjp]]):
        self.tapes, self.backend, self.program = tapes, tapes.backend, tapes.program
        self.beside = beside

    def _leaves(self, each: SharedOperandVjp) -> list[str]:
        """Return the keys of the gradients by the leaves of a piece's shared operands."""
        piece = self.program.blocks[each.number].body[each.place]
        assert isinstance(piece, Piece)
        return [key for name in piece.shared for key, _ in self.tapes.shared_keys(name)]

    @cached_property
    def by_key(self) -> dict[str, list[Lookup]]:
        """The gradients that are rows, by key, with the lookups that they come from."""
        found: dict[str, list[Lookup]] = {}
        dense: set[str] = set()
        for each in (each for every in self.beside.values() for each in every):
            leaves = self._leaves(each)
            dense.update(leaves[place] for place in each.linear.dense)
            for number, place in each.linear.lookups.items():
                found.setdefault(leaves[place], []).append(Lookup(each, number))
        return {key: lookups for key, lookups in found.items() if key not in dense}

    def numbers(self, each: SharedOperandVjp) -> list[int]:
        """The numbers of the deltas of a piece that are not summed."""
        every = (lookup for lookups in self.by_key.values() for lookup in lookups)
        return [lookup.number for lookup in every if lookup.each is each]

    @cached_property
    def tables(self) -> dict[str, TensorType]:
        """The tables that are looked up, by key."""
        every = (pair for name in self.program.shared for pair in self.tapes.shared_keys(name))
        return {key: type_ for key, type_ in every if key in self.by_key and type_ is not None}

    @property
    def specs(self) -> list[Spec]:
        """The dtypes and shapes of the results of `flat`: for each key the rows, and their numbers."""
        return [
            spec
            for table in self.tables.values()
            for spec in ((table.dtype, (None, *table.shape[1:])), ("int32", (None,)))
        ]

    def of_segment(self, end: State, tape: State, sound: Array, shared: Mapping[str, Leaves]) -> list[Array]:
        """Return for each lookup three arrays: its gradients' rows, their numbers in the table, and which count.

        `end` is the state when all runs of the segment have been undone; see `Replay.segment`.
        """
        backend, found = self.backend, []
        lanes = backend.lanes_of(sound)
        for key in self.tables:
            for each, number in ((lookup.each, lookup.number) for lookup in self.by_key[key]):
                block = self.tapes.blocks[each.number]
                piece = self.program.blocks[each.number].body[each.place]
                assert isinstance(piece, Piece)
                kept, used = residuals(self.tapes, each, tape), tape[block.used]
                owners = tape[block.key(self.tapes.owner)]
                place = backend.lane_numbers(backend.lanes_of(owners))
                margin = self.tapes.margin(block, lanes)
                mask = (place >= margin) & (place < margin + used) & backend.load(sound, [], owners)
                if (predicate := block.predicate(each.place)) is not None:
                    mask = mask & tape[predicate]
                operands = [shared[name] for name in piece.shared]
                numbers = each.linear.looked_up(number, kept, operands, mask)
                found += [end[[*each.deltas][number]], backend.cast(numbers, "int32"), mask]
        return found

    @property
    def count(self) -> int:
        """The number of arrays that `of_segment` returns."""
        return 3 * sum(len(self.by_key[key]) for key in self.tables)

    def flat(self, arrays: Sequence[Array]) -> list[Array]:
        """Select the rows that count, and their numbers, of `of_segment`: for each key, of all its lookups."""
        remaining, backend = iter(arrays), self.backend
        found: list[Array] = []
        for key, table in self.tables.items():
            parts = []
            for _ in self.by_key[key]:
                rows, numbers, mask = (next(remaining) for _ in range(3))
                parts.append((backend.live(rows, mask, table.shape[1:]), backend.live(numbers, mask, ())))
            found += [backend.joined(*each) for each in zip(*parts, strict=True)]
        return found

    # -- of all segments -----------------------------------------------------------------------------------------------

    def none(self) -> list[Array]:
        """Return the initial values of the loops.

        These are the number of rows with different numbers, the number of further rows, and for each key lists of rows
        and numbers.
        """
        return [self.backend.constant(0), self.backend.constant(0), *self.backend.records.none(self.specs)]

    def with_more(self, before: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
        """Add the results of `flat`; where there are more rows than different numbers, sum those of one number first.

        So there are never more than two rows for each that is looked up, and those of a segment, and each row is
        summed about twice.
        """
        backend = self.backend

        def summed() -> list[Array]:
            arrays = self.joined(before)
            return [
                self._count(arrays),
                backend.constant(0),
                *backend.records.added(backend.records.none(self.specs), arrays),
            ]

        before = [*before] if not self.tables else backend.cond(before[1] > before[0], summed, [*before], seldom=True)
        different, more, *records = before
        return [different, more + self._count(arrays), *backend.records.added(records, arrays)]

    def joined(self, before: Sequence[Array]) -> list[Array]:
        """Return for each key the rows and their numbers, each once."""
        return self.summed(self.backend.records.joined(before[2:], self.specs))

    def summed(self, arrays: Sequence[Array]) -> list[Array]:
        """Sum the rows of each number in the results of `flat`."""
        pairs = zip(arrays[::2], arrays[1::2], strict=True)
        return [array for rows, numbers in pairs for array in self.backend.summed_by_number(rows, numbers)]

    def _count(self, arrays: Sequence[Array]) -> Array:
        return sum((self.backend.lanes_of(numbers) for numbers in arrays[1::2]), self.backend.constant(0))


# -- pullbacks ---------------------------------------------------------------------------------------------------------


Totals = dict[str, Array]
"""The gradients by shared operands so far, by key."""
Carried = list[Array]


class BatchedPullback:
    """The work of one program; gradients by shared operands are sums of all lanes, or of each lane."""

    def __init__(self, tapes: Tapes, lookups: Lookups, *, by_lane: bool):
        self.tapes, self.lookups, self.by_lane = tapes, lookups, by_lane
        self.backend, self.program = tapes.backend, tapes.program

    def nothing(self, type_: TensorType, lanes: Any) -> Array:
        """Return the zero gradient by a shared operand: of all lanes, or of each."""
        return self.backend.zeros(lanes if self.by_lane else None, type_)

    def late(
        self,
        each: SharedOperandVjp,
        end: State,
        tape: State,
        sound: Array,
        shared: Mapping[str, Leaves],
        totals: Totals,
    ) -> tuple[State, Totals]:
        """Undo a late piece for all rows of the segment.

        Return `end` with the deltas that stay rows, and `totals` with what the others and the sums add to them.
        """
        backend, linear = self.backend, each.linear
        names, operands, left_out = self._given(each, shared)
        deltas = [*each.deltas]
        keys, staying = [key for key in names if key in totals], [deltas[number] for number in left_out]
        kept = residuals(self.tapes, each, tape)
        lanes = backend.lanes_of(sound)
        length = backend.lanes_of(tape[self.tapes.blocks[each.number].key(LANE)])

        def some(start: Array, rows: Rows, arrays: Sequence[Array], before: Carried) -> Carried:
            assert rows.lanes is not None
            of_rows, coming = arrays[: len(kept)], [[seed] for seed in arrays[len(kept) :]]
            back = linear.backward(of_rows, operands, coming, backend.lanes_of(rows.mask))
            written = [
                backend.with_rows(array, start, back.deltas[number])
                for array, number in zip(before, left_out, strict=False)
            ]
            nothing = [self.nothing(type_, lanes) for type_ in each.sums.values()]
            pairs = zip(nothing, back.parts, strict=True)
            sums = [summed(backend, total, part, rows, by_lane=self.by_lane) for total, part in pairs]
            apart = Apart(rows.lanes, lanes) if self.by_lane else None
            found = linear.pull_back(of_rows, back.deltas, sums, operands, rows.mask, left_out, apart)
            after = _added(dict(zip(keys, before[len(staying) :], strict=True)), names, found)
            return [*written, *(after[key] for key in keys)]

        blank = [backend.zeros(length, each.deltas[key]) for key in staying]
        blank = backend.made_apart(blank, tape[self.tapes.blocks[each.number].used])
        arrays, carried = [*kept, *(end[key] for key in each.by_row)], [*blank, *(totals[key] for key in keys)]
        found = self._over_rows(each, tape, sound, arrays, carried, some)
        after = dict(zip(keys, found[len(staying) :], strict=True))
        return {**end, **dict(zip(staying, found, strict=False))}, {**totals, **after}

    def _given(self, each: SharedOperandVjp, shared: Mapping[str, Leaves]) -> tuple[list[str], list[Leaves], list[int]]:
        """Return the gradients' keys for a piece's shared operands, these, and the numbers of deltas that stay rows."""
        piece = self.program.blocks[each.number].body[each.place]
        assert isinstance(piece, Piece)
        names = [key for name in piece.shared for key, _ in self.tapes.shared_keys(name)]
        return names, [shared[name] for name in piece.shared], self.lookups.numbers(each)

    def pulled_back(
        self,
        each: SharedOperandVjp,
        end: State,
        tape: State,
        sound: Array,
        shared: Mapping[str, Leaves],
        totals: Totals,
    ) -> Totals:
        """Add to `totals` the contributions of a piece that is not late, from all rows of the segment."""
        backend, linear = self.backend, each.linear
        names, operands, left_out = self._given(each, shared)
        sums, lanes = [end[key] for key in each.sums], backend.lanes_of(sound)
        if len(each.deltas) == len(left_out):
            if not each.sums:
                return totals
            apart = Apart(None, lanes) if self.by_lane else None
            return _added(totals, names, linear.pull_back([], [], sums, operands, sound, left_out, apart))
        kept = residuals(self.tapes, each, tape)
        keys = [key for key in names if key in totals]

        def some(_: Array, rows: Rows, arrays: Sequence[Array], before: Carried) -> Carried:
            assert rows.lanes is not None
            apart = Apart(rows.lanes, lanes) if self.by_lane else None
            given = arrays[: len(kept)], arrays[len(kept) :], before[: len(sums)], operands
            after = _added(
                dict(zip(keys, before[len(sums) :], strict=True)),
                names,
                linear.pull_back(*given, rows.mask, left_out, apart),
            )
            none = [self.nothing(type_, lanes) for type_ in each.sums.values()]  # they count once
            return [*none, *(after[key] for key in keys)]

        arrays = [*kept, *(end[key] for key in each.deltas)]
        found = self._over_rows(each, tape, sound, arrays, [*sums, *(totals[key] for key in keys)], some)
        return {**totals, **dict(zip(keys, found[len(sums) :], strict=True))}

    def _over_rows(
        self,
        each: SharedOperandVjp,
        tape: State,
        sound: Array,
        arrays: Sequence[Array],
        carried: Carried,
        some: Callable[[Array, Rows, Sequence[Array], Carried], Carried],
    ) -> Carried:
        """Fold `some` over the rows of `arrays`, so many at a time: it gets their start, and updates `carried`.

        Each row that has taken part is of the mask once.
        """
        backend, block = self.backend, self.tapes.blocks[each.number]
        lanes, used = backend.lanes_of(sound), tape[block.used]
        length, margin = backend.lanes_of(tape[block.key(LANE)]), self.tapes.margin(block, lanes)

        def turn(at_once: Any, now: tuple[Array, Carried]) -> tuple[Array, Carried]:
            begun, before = now
            beyond = begun + at_once > length
            start = backend.where(beyond, begun * 0 + (length - at_once), begun)
            place = start + backend.lane_numbers(at_once)
            numbers, *found = [
                backend.rows_at(array, start, at_once) for array in (tape[block.key(self.tapes.owner)], *arrays)
            ]
            mask = (place >= begun) & (place < margin + used) & backend.load(sound, [], numbers)
            if (predicate := block.predicate(each.place)) is not None:
                mask = mask & backend.rows_at(tape[predicate], start, at_once)
            return begun + at_once, some(start, Rows(backend, numbers, mask), found, before)

        now = backend.constant(0) + margin, carried
        for at_once, least in self._at_once(length, lanes, each):

            def are_left(now: tuple[Array, Carried], least: int = least) -> Array:
                return now[0] + least <= margin + used

            now = backend.while_loop(are_left, partial(turn, at_once), now, stops=True)
        return now[1]

    def _at_once(self, length: Any, lanes: Any, each: SharedOperandVjp) -> list[tuple[Any, int]]:
        """Return the numbers of rows to process together, each with the least number left for which it serves.

        Where rows are wide, first many, then of the rest fewer: what is done for them is compiled twice then.
        """
        if self.by_lane:  # a row takes much more then
            return [(self.tapes.apart_at_once(lanes), 1)]
        if not isinstance(length, int):
            return [(lanes * self.tapes.sizes.batches, 1)]
        many = CPU.pulled
        is_wide = sum(type_.bytes for type_ in each.deltas.values()) >= CPU.pulled_wide
        if is_wide and many <= length:
            return [(many, many // 2), (many // 4, 1)]
        return [(min(many // 2 if length > many * 4 else many // 4 if is_wide else CPU.pulled_short, length), 1)]


def summed(backend: Backend, total: Array, part: Array, rows: Rows, *, by_lane: bool) -> Array:
    """Return a total plus the rows; `[lanes, ...]` if `by_lane`, where several rows may be of one lane."""
    if by_lane:
        assert rows.lanes is not None
        return total + backend.sum_rows(part, rows.mask, rows.lanes, backend.lanes_of(total))
    return total + backend.sum_rows(part, rows.mask)


def _added(totals: Totals, names: Sequence[str], found: Sequence[Sequence[Array | None]]) -> Totals:
    """`totals` with gradients by the leaves of operands, of these names."""
    more = zip(names, (leaf for leaves in found for leaf in leaves), strict=True)
    return {**totals, **{key: totals[key] + leaf for key, leaf in more if leaf is not None and key in totals}}
