"""The rows that a block computes: one for each lane of the batch, or one for each of a few lanes gathered for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pcbatch.runtime.backends.protocol import Array, Backend


@dataclass(frozen=True)
class Rows:
    """The lane of each row, and the rows that take part.

    `lanes` is int32 `[rows]`, or None where row i is lane i; `mask` bool `[rows]`; where all rows are known to take
    part, `all_take_part`. Arrays of the state are `[lanes, ...]`, what a block computes is `[rows, ...]`.
    """

    backend: Backend
    lanes: Array | None
    mask: Array
    all_take_part: bool = False
    turns: Array | None = None
    """The turn of a deferred block for each row, int32 `[rows]`; several rows may then be of one lane."""
    dear: frozenset[int] = frozenset()
    """The places, in the block's body, of pieces that are computed only if a row takes part."""

    @classmethod
    def of_all(cls, backend: Backend, mask: Array, dear: frozenset[int] = frozenset()) -> Rows:
        """A row for every lane; those of `mask` (bool `[lanes]`) take part."""
        return cls(backend, None, mask, dear=dear)

    @classmethod
    def everyone(cls, backend: Backend, mask: Array) -> Rows:
        """A row for every lane, which takes part; all of `mask` holds."""
        return cls(backend, None, mask, all_take_part=True)

    @classmethod
    def chunk(cls, backend: Backend, order: Array, count: Array, first: Array, size: int) -> Rows:
        """`size` rows for the lanes `order[first], order[first + 1], ..`, of which the first `count` are to run.

        `order` is int32 `[lanes]`, `first < count` are int32 scalars. Rows that are left over take no part; they repeat
        the last of these lanes, which is in this chunk: its values are those of a lane that runs.
        """
        lanes, mask = _some(backend, order, count, first, size)
        return cls(backend, lanes, mask)

    @classmethod
    def turns_of_lanes(cls, backend: Backend, order: Array, count: Array, first: Array, size: int, most: int) -> Rows:
        """The same for turns of lanes: `order` has numbers of turns, each lane having `most` of them."""
        numbers, mask = _some(backend, order, count, first, size)
        return cls(backend, numbers // most, mask, turns=numbers % most)

    def take(self, array: Array) -> Array:
        """The rows of an array of the state."""
        return array if self.lanes is None else self.backend.load(array, [], self.lanes)

    def load(self, array: Array, indices: Sequence[Array]) -> Array:
        """`array[lane, i, j, ..]` for every row."""
        return self.backend.load(array, indices, self.lanes)

    def store(self, array: Array, indices: Sequence[Array], mask: Array, value: Array) -> Array:
        """`array` of the state with `array[lane, i, j, ..] = value[row]` for the rows of `mask`."""
        return self.backend.masked_store(array, indices, mask, value, self.lanes)

    def put(self, array: Array, mask: Array, value: Array) -> Array:
        """`array` of the state with whole rows of `value` (or a scalar) for the lanes of the rows of `mask`."""
        if self.lanes is None:
            return self.backend.where(mask, value, array)
        return self.store(array, [], mask, self.backend.where(mask, value, value))

    def put_each(self, arrays: Sequence[Array], masks: Sequence[Array], values: Sequence[Array]) -> list[Array]:
        """`put` for each."""
        if self.all_take_part:
            return [
                value if mask is self.mask and len(value.shape) == len(array.shape) else self.put(array, mask, value)
                for array, mask, value in zip(arrays, masks, values, strict=True)
            ]
        if self.lanes is None:
            return self.backend.where_each(masks, values, arrays)
        return [self.put(*each) for each in zip(arrays, masks, values, strict=True)]


def _some(backend: Backend, order: Array, count: Array, first: Array, size: int) -> tuple[Array, Array]:
    """`size` entries of `order` from `first` on, and which are of the first `count`; for others the last of these."""
    places = backend.lane_numbers(size) + first
    mask = places < count
    last = count + backend.constant(-1)
    return backend.take(order, backend.where(mask, places, last)), mask
