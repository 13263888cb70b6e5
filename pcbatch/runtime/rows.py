"""The rows that a block computes: one for each lane of the batch, or one for each of a few lanes gathered for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pcbatch.runtime.backends.protocol import Array, Backend

FEW = 8
"""Of this many times as many lanes as there are rows, or more, only those that have a row are written, one by one.

Else every lane reads its row or keeps what it has, of which XLA makes one kernel with what computes the row. To write
them is a kernel more, and takes as long: 64 rows of 100 numbers 6 us, as does reading one of these for 256 lanes."""


@dataclass(frozen=True)
class Rows:
    """Which lane each row is of, and which rows take part.

    `lanes` is int32 `[rows]`, or None where row i is lane i; `mask` bool `[rows]`. Arrays of the state are `[lanes,
    ...]`, what a block computes is `[rows, ...]`. The other way round, `row_of` is int32 `[lanes]`, the row of each
    lane, and `has_row` bool `[lanes]`: which lanes have one. Both are None where these are few.
    """

    backend: Backend
    lanes: Array | None
    mask: Array
    row_of: Array | None = None
    has_row: Array | None = None

    @classmethod
    def of_all(cls, backend: Backend, mask: Array) -> Rows:
        """A row for every lane; those of `mask` (bool `[lanes]`) take part."""
        return cls(backend, None, mask)

    @classmethod
    def gathered(cls, backend: Backend, mask: Array, size: int) -> Rows:
        """`size` rows for the first lanes of `mask`; rows that are left over repeat the first of these lanes."""
        lanes, taken = backend.compact(mask, size), backend.lane_numbers(size) < backend.sum(mask)
        count = backend.lanes_of(mask)
        if not isinstance(count, int) or count > FEW * size:
            return cls(backend, lanes, taken)
        before = backend.ranks(mask)
        has_row = mask & (before < size)
        return cls(backend, lanes, taken, backend.where(has_row, before, backend.constant(0)), has_row)

    def take(self, array: Array) -> Array:
        """The rows of an array of the state."""
        return array if self.lanes is None else self.backend.take(array, self.lanes)

    def load(self, array: Array, indices: Sequence[Array]) -> Array:
        """`array[lane, i, j, ..]` for every row."""
        return self.backend.load(array, indices, self.lanes)

    def store(self, array: Array, indices: Sequence[Array], mask: Array, value: Array) -> Array:
        """`array` of the state with `array[lane, i, j, ..] = value[row]` for the rows of `mask`."""
        return self.backend.masked_store(array, indices, mask, value, self.lanes)

    def put(self, array: Array, mask: Array, value: Array) -> Array:
        """`array` of the state with whole rows of `value` (or a scalar) for the lanes of the rows of `mask`."""
        return self.put_each([array], [mask], [value])[0]

    def put_each(self, arrays: Sequence[Array], masks: Sequence[Array], values: Sequence[Array]) -> list[Array]:
        """`put` for each."""
        if self.lanes is None:
            return self.backend.where_each(masks, values, arrays)
        values = [self.backend.where(mask, value, value) for mask, value in zip(masks, values, strict=True)]
        if self.row_of is None:
            return [
                self.store(array, [], mask, value) for array, mask, value in zip(arrays, masks, values, strict=True)
            ]
        taking = [self.backend.take(mask, self.row_of) & self.has_row for mask in masks]
        return self.backend.where_each(taking, [self.backend.take(value, self.row_of) for value in values], arrays)
