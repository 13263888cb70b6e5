"""Gradients by tables of which a run has only looked up rows: these rows and their numbers, and no sum over all rows.

A table that is looked up in alone has as its gradient what each lookup gives back, as TensorFlow's `tf.gather` has it.
Where gradients come to it in another way, too, one sum is made of all, as TensorFlow does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.shared_operand_vjp import SharedOperandVjp, residuals
from pcbatch.runtime.adjoint.tape import Tapes
from pcbatch.runtime.backends.pieces import Leaves
from pcbatch.runtime.backends.protocol import Array, Spec, State


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
