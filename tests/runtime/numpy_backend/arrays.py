"""Arrays of NumPy; see `backends.arrays`. What is out of range or of two dtypes raises, where a compiler might not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pcbatch.ir.types import TensorType


class NumPyArrays:
    """See `arrays.Arrays`. Scalars are NumPy's scalars; lengths are always known."""

    # -- making arrays -------------------------------------------------------------------------------------------------

    def zeros(self, lanes: Any, type_: TensorType, entries: Any = None) -> Any:
        lengths = [each for each in (lanes, entries) if each is not None]
        return np.zeros((*lengths, *type_.shape), type_.dtype)[()]

    def made_apart(self, zeros: Sequence[Any], count: Any) -> list[Any]:
        return [*zeros]

    def constant(self, value: int | bool) -> Any:
        return np.bool_(value) if isinstance(value, bool) else np.int32(value)

    def array(self, value: Any, dtype: str) -> Any:
        array = np.asarray(value)
        kinds = {array.dtype.kind, np.dtype(dtype).kind}
        return array.astype(dtype, casting="unsafe" if kinds == {"i", "u"} else "same_kind")[()]

    def adopted(self, array: np.ndarray) -> Any:
        return array

    def numpy_of(self, array: Any) -> np.ndarray:
        return np.array(array)

    def lane_numbers(self, lanes: Any) -> Any:
        return np.arange(lanes, dtype=np.int32)

    def lanes_of(self, array: Any, axis: int = 0) -> Any:
        return array.shape[axis]

    def lengthen(self, stack: Any, entries: Any) -> Any:
        return np.pad(stack, [(0, 0), (0, entries - stack.shape[1]), *[(0, 0)] * (stack.ndim - 2)])

    def extended(self, array: Any, length: int) -> Any:
        return np.concatenate([array, np.repeat(array[-1:], length - len(array), axis=0)])

    # -- element by element --------------------------------------------------------------------------------------------

    def cast(self, array: Any, dtype: str) -> Any:
        return np.asarray(array).astype(dtype)[()]

    def equal(self, array: Any, number: int) -> Any:
        return array == number

    def add(self, a: Any, b: Any) -> Any:
        _agree(a, b)
        return a + b

    def both(self, a: Any, b: Any) -> Any:
        return a & b

    def where(self, mask: Any, new: Any, old: Any) -> Any:
        if isinstance(mask, list | tuple):
            return [self.where(*each) for each in zip(mask, new, old, strict=True)]
        _agree(new, old)
        trailing = max(np.ndim(new), np.ndim(old)) - np.ndim(mask) if np.ndim(mask) else 0
        return np.where(np.reshape(mask, (*np.shape(mask), *[1] * trailing)), new, old)[()]

    def once_there(self, mask: Any, arrays: Sequence[Any]) -> Any:
        return mask

    # -- rows and elements ---------------------------------------------------------------------------------------------

    def listed(self, mask: Any) -> Any:
        lanes = np.flatnonzero(mask)
        rows = np.full(len(mask), lanes[0] if lanes.size else 0, np.int32)
        rows[: lanes.size] = lanes
        return rows, np.int32(lanes.size)

    def load(self, array: Any, indices: Sequence[Any], lanes: Any | None = None) -> Any:
        rows = np.arange(array.shape[0]) if lanes is None else lanes
        _inside([rows], array.shape)
        vectors = [at for at, index in enumerate(indices) if index.ndim == 2]
        places = [rows.reshape(-1, *[1] * len(vectors)) if vectors else rows]
        for at, (index, size) in enumerate(zip(indices, array.shape[1:], strict=False)):
            sizes = [index.shape[1] if each == at else 1 for each in vectors]
            clipped = np.clip(index, 0, size - 1)
            places.append(clipped.reshape(-1, *sizes) if vectors else clipped)
        return array[tuple(places)]

    def masked_store(
        self,
        array: Any,
        indices: Sequence[Any],
        mask: Any,
        value: Any,
        lanes: Any | None = None,
        *,
        adds: bool = False,
    ) -> Any:
        places, values = _written(array, indices, mask, value, lanes)
        if adds:
            total = array.copy()
            np.add.at(total, tuple(places), values)
            return total
        if len(np.unique(lane := places[0])) < len(lane):
            raise IndexError("two rows are stored to one lane")
        stored = array.copy()
        stored[tuple(places)] = values
        return stored

    def with_rows(self, array: Any, start: Any, rows: Any) -> Any:
        _agree(array, rows)
        _inside([start, start + len(rows) - 1], (len(array), len(array)))
        stored = array.copy()
        stored[start : start + len(rows)] = rows
        return stored

    def rows_at(self, array: Any, start: Any, count: Any) -> Any:
        if count:
            _inside([start, start + count - 1], (len(array), len(array)))
        return array[start : start + count]

    def unspread(self, array: Any, shape: tuple[int, ...]) -> Any:
        new = array.ndim - 1 - len(shape)
        summed = array.sum(axis=tuple(range(1, 1 + new)))
        axes = tuple(at for at, size in enumerate(shape, 1) if size == 1 and summed.shape[at] != 1)
        return summed.sum(axis=axes, keepdims=True)

    def live(self, array: Any, mask: Any, shape: tuple[int, ...]) -> Any:
        return array[mask].reshape(-1, *shape)

    def summed_by_number(self, rows: Any, numbers: Any) -> tuple[Any, Any]:
        each, place = np.unique(numbers, return_inverse=True)
        found = np.zeros((len(each), *rows.shape[1:]), rows.dtype)
        np.add.at(found, place, rows)
        return found, each

    def rows_of_table(self, rows: Any, numbers: Any, table: TensorType) -> Any:
        found = np.zeros(table.shape, table.dtype)
        found[numbers] = rows
        return found

    def sum_of_gradients(self, one: Any, other: Any) -> Any:
        return one + other

    def sum_rows(self, array: Any, mask: Any, lanes: Any = None, count: Any = None) -> Any:
        if lanes is None:
            return array[mask].sum(axis=0)
        found = np.zeros((count, *array.shape[1:]), array.dtype)
        np.add.at(found, lanes[mask], array[mask])
        return found

    # -- over all lanes ------------------------------------------------------------------------------------------------

    def counted(self, mask: Any) -> Any:
        return np.cumsum(mask, dtype=np.int32)

    def ranks(self, numbers: Any) -> Any:
        return np.array([np.count_nonzero(numbers[:place] == number) for place, number in enumerate(numbers)], np.int32)

    def marked(self, size: Any, numbers: Any, mask: Any) -> Any:
        _inside([numbers[mask]], (size,))
        found = np.zeros(size, bool)
        found[numbers[mask]] = True
        return found

    def any(self, mask: Any, *, by_lane: bool = False) -> Any:
        return np.any(mask, axis=tuple(range(1, mask.ndim)) if by_lane else None)

    def sum(self, array: Any, weights: Sequence[float] | None = None) -> Any:
        if weights is None:
            return np.sum(array, dtype=np.int32)
        return np.sum(array.astype(np.float32) * np.array(weights, np.float32))

    def min(self, array: Any) -> Any:
        return np.min(array, initial=np.iinfo(array.dtype).max)

    def max(self, array: Any) -> Any:
        return np.max(array)

    def tally(self, numbers: Any, labels: Sequence[int]) -> Any:
        return np.array([np.count_nonzero(numbers == label) for label in labels], np.int32)

    # -- vectors of scalars --------------------------------------------------------------------------------------------

    def stack(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        _agree(*arrays)
        return np.stack(arrays, axis)

    def joined(self, *vectors: Any) -> Any:
        _agree(*vectors)
        return np.concatenate(vectors)

    def unstack(self, vector: Any, count: int) -> list[Any]:
        if len(vector) != count:
            raise ValueError(f"a vector of {len(vector)} has no {count} scalars")
        return [*vector]


def _agree(*arrays: Any) -> None:
    """TypeError where arrays are of different dtypes; Python's numbers take any."""
    dtypes = {array.dtype for array in arrays if isinstance(array, np.ndarray | np.generic)}
    if len(dtypes) > 1:
        raise TypeError(f"dtypes {sorted(map(str, dtypes))} do not meet; cast one of them")


def _inside(indices: Sequence[Any], shape: tuple[int, ...]) -> None:
    """IndexError where an index leaves its axis; none counts from the end here."""
    for axis, (index, size) in enumerate(zip(indices, shape, strict=False)):
        if np.any((np.asarray(index) < 0) | (np.asarray(index) >= size)):
            raise IndexError(f"indices {index} leave axis {axis} of an array of shape {shape}")


def _written(array: Any, indices: Sequence[Any], mask: Any, value: Any, lanes: Any | None) -> tuple[list[Any], Any]:
    """Return the elements that `masked_store` writes: their indices by axis, lanes first, and the new values."""
    _agree(array, value)
    vectors = [at for at, index in enumerate(indices) if index.ndim == 2]
    written = [*(indices[at].shape[1] for at in vectors), *array.shape[1 + len(indices) :]]
    missing = len(written) + 1 - value.ndim
    values = np.broadcast_to(np.reshape(value, (len(mask), *[1] * missing, *value.shape[1:])), (len(mask), *written))
    rows = np.flatnonzero(mask)
    lane = rows if lanes is None else lanes[rows]
    places = [lane.reshape(-1, *[1] * len(vectors))]
    for at, index in enumerate(indices):
        sizes = [index.shape[1] if each == at else 1 for each in vectors]
        places.append(index[rows].reshape(-1, *sizes))
    _inside(places, array.shape)
    return places, values[rows]
