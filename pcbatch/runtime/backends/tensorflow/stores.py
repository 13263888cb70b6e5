"""Stores as values: arrays with some of their elements replaced."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.slices import Window, mesh
from pcbatch.ir.types import ConflictError, TensorType, casts_into, join
from pcbatch.runtime.backends.tensorflow import raw_ops
from pcbatch.runtime.backends.tensorflow.arithmetic import is_bool
from pcbatch.runtime.backends.tensorflow.indexing import in_range, positions_in, replaced_at
from pcbatch.runtime.backends.tensorflow.structures import spelling
from pcbatch.runtime.backends.tensorflow.weak import commit, is_number

# -- scattering --------------------------------------------------------------------------------------------------------
# The elements that a store writes: its indices as those of a scatter, its value broadcast to them.


def places(indices: Sequence[tf.Tensor], value: tf.Tensor, shape: tf.TensorShape) -> tuple[tf.Tensor, tf.Tensor]:
    """Places `[lanes, .., depth]` and values for a scatter into an array of `shape`, `[lanes, ..]`.

    `indices` are int32 `[lanes]`, or `[lanes, n]`: positions, of which every combination is a place.
    """
    vectors = _lengths(indices)
    written = [*vectors, *shape[len(indices) :]]
    missing = len(written) + 1 - value.shape.rank
    if missing or value.shape[1:] != written:
        lanes = _rows(indices)
        value = tf.reshape(value, [lanes, *[1] * missing, *value.shape[1:]])
        value = tf.broadcast_to(value, [lanes, *written])
    return combined(indices), value


def _lengths(indices: Sequence[tf.Tensor]) -> list[int]:
    return [index.shape[1] for index in indices if index.shape.rank == 2]


def _rows(indices: Sequence[tf.Tensor]) -> Any:
    """Return the number of rows. Few stores need to know, and to ask takes five operations of a graph."""
    static = indices[0].shape[0]
    return tf.shape(indices[0])[0] if static is None else static


def combined(indices: Sequence[tf.Tensor]) -> tf.Tensor:
    """The places of `indices`, `[lanes, .., depth]`; see `places`."""
    vectors = _lengths(indices)
    if not vectors:
        return tf.stack(indices, axis=-1)
    lanes = _rows(indices)
    axes = iter(range(1, len(vectors) + 1))
    spread = []
    for index in indices:
        axis = next(axes) if index.shape.rank == 2 else 0
        sizes = [index.shape[1] if at == axis else 1 for at in range(1, len(vectors) + 1)]
        spread.append(tf.broadcast_to(tf.reshape(index, [lanes, *sizes]), [lanes, *vectors]))
    return tf.stack(spread, axis=-1)


def compacted(mask: tf.Tensor, size: Any) -> tf.Tensor:
    """int32 `[size]`: the numbers of the first lanes of `mask`, bool `[lanes]`, then the first of them again."""
    # A sum and a scatter: 5 us for 64 lanes and 46 for 4096 under XLA, a sort 7 and 490.
    lanes = tf.shape(mask)[0] if mask.shape[0] is None else mask.shape[0]
    at = tf.where(mask, tf.cumsum(tf.cast(mask, tf.int32)) - 1, size)
    # Of no lanes there is no greatest.
    some = tf.concat([mask, [False]], axis=0) if mask.shape[0] is None else mask
    first = tf.fill([size], tf.argmax(some, output_type=tf.int32))
    return written(first, [at], raw_ops.numbers(lanes) if isinstance(lanes, int) else tf.range(lanes))


def written(array: tf.Tensor, indices: Sequence[tf.Tensor], value: tf.Tensor) -> tf.Tensor:
    """`array` with `array[i, j, ..] = value` for every row of `indices` and `value`; places that are none are left."""
    if _is_empty(array):
        return array
    # One scatter that drops what has no place: XLA writes in place. With where(mask, new_array, array) a push would
    # cost the whole stack.
    at, value = places(indices, value, array.shape)
    return tf.raw_ops.TensorScatterUpdate(tensor=array, indices=at, updates=value, bad_indices_policy="IGNORE")


def _is_empty(array: tf.Tensor) -> bool:
    """Return whether an array has no elements in any row: TensorFlow refuses to write there."""
    return 0 in array.shape[1:].as_list()


def added(array: tf.Tensor, indices: Sequence[tf.Tensor], value: tf.Tensor) -> tf.Tensor:
    """`array` with `value` added at `array[i, j, ..]`, for one row after another; places that are none are left."""
    if _is_empty(array):
        return array
    at, value = places(indices, value, array.shape)
    return tf.raw_ops.TensorScatterAdd(tensor=array, indices=at, updates=value, bad_indices_policy="IGNORE")


def store_element(array: Any, indices: Any, value: Any) -> tf.Tensor:
    """Return one example's `array` after `array[indices] = value`; negative indices count from the end.

    An index is an integer, a vector of positions, a slice or a `Window`. IndexError where it leaves the array. Made of
    TensorFlow's operations, so that a tape around it sees the store.
    """
    array = tf.convert_to_tensor(array)
    given = indices if isinstance(indices, tuple) else (indices,)
    element = _element_of(array, value)
    if len(given) == 1 and given[0] is ...:
        return spread(element, array.shape)
    if len(given) > array.shape.rank:
        raise IndexError(f"too many indices for an array of rank {array.shape.rank}")
    found = tuple(_positions(index, size) for index, size in zip(given, array.shape, strict=False))
    at = np.stack(np.broadcast_arrays(*mesh(found)), axis=-1)
    updates = spread(element, [*at.shape[:-1], *array.shape[len(found) :]])
    if at.ndim > 1:  # the last value that a place gets is the one that it keeps, and that has the gradient
        flat = at.reshape(-1, at.shape[-1])
        _, from_the_end = np.unique(flat[::-1], axis=0, return_index=True)
        if len(from_the_end) < len(flat):
            last = np.sort(len(flat) - 1 - from_the_end)
            at = flat[last]
            updates = tf.gather(tf.reshape(updates, [len(flat), *array.shape[len(found) :]]), last)
    return tf.tensor_scatter_nd_update(array, at[None], updates[None])


def masked(array: tf.Tensor, mask: tf.Tensor, element: tf.Tensor) -> tf.Tensor:
    """`array` with `array[mask] = element`, which is one for all places; TypeError where NumPy takes one for each."""
    count = mask.shape.rank
    if array.shape[:count] != mask.shape:
        raise IndexError(f"a mask of shape {mask.shape.as_list()} does not fit an array of {array.shape.as_list()}")
    rest = array.shape[count:]
    if element.shape.rank > rest.rank and set(element.shape[: element.shape.rank - rest.rank]) != {1}:
        raise TypeError(
            "what is stored where a mask is true is one for all places; write `a = tf.where(mask, values, a)`"
        )
    return tf.where(tf.reshape(mask, [*mask.shape, *[1] * rest.rank]), spread(element, rest), array)


def _element_of(array: tf.Tensor, value: Any) -> tf.Tensor:
    """Convert `value` to the dtype of `array`; TensorFlow's error where it does not fit."""
    if isinstance(value, (tf.Tensor, np.ndarray, np.generic)):
        found = tf.convert_to_tensor(value)
        if casts_into(found.dtype.name, array.dtype.name):
            return tf.cast(found, array.dtype)
    return tf.convert_to_tensor(value, array.dtype)


def spread(value: tf.Tensor, shape: Any) -> tf.Tensor:
    """`value` broadcast to `shape`; as in NumPy's assignments it may have more leading axes of length 1."""
    extra = max(value.shape.rank - len(shape), 0)
    if extra and set(value.shape[:extra]) == {1}:
        value = tf.reshape(value, value.shape[extra:])
    own, wanted = tuple(value.shape), tuple(shape)
    if len(own) > len(wanted) or any(m not in (1, n) for m, n in zip(own[::-1], wanted[::-1], strict=False)):
        raise ValueError(
            f"could not broadcast input array from shape {own} into shape {wanted}"
            if wanted
            else "setting an array element with a sequence."
        )
    return tf.broadcast_to(value, shape)


def _positions(index: Any, size: int) -> Any:
    """An index as valid positions: an int or a vector."""
    if isinstance(index, Window):
        return np.arange(size)[index.resolve(size)]
    if isinstance(index, slice):
        bounds = (None if bound is None else operator.index(bound) for bound in (index.start, index.stop, index.step))
        return np.arange(size)[slice(*bounds)]
    numbers = np.asarray(index)
    if numbers.ndim == 0:
        numbers = np.asarray(operator.index(index))
    outside = numbers[(numbers < -size) | (numbers >= size)]
    if outside.size:
        raise IndexError(f"index {outside.flat[0]} is out of range for an axis of {size}")
    return numbers % max(size, 1)


# -- stores ------------------------------------------------------------------------------------------------------------

ARRAYS = (tf.Tensor, tf.Variable, np.ndarray)


def row(value: Any, whole: Any) -> Any:
    """The tuple or list `value` as an element of the array `whole`; itself where that is a structure."""
    if not isinstance(whole, ARRAYS):
        return value
    array = tf.convert_to_tensor(whole)
    parts = [row(each, array) if isinstance(each, (tuple, list)) else _element_to_store(array, each) for each in value]
    return tf.stack(parts) if parts else tf.zeros([0], array.dtype)


def stored(whole: Any, value: Any, *indices: Any, site: int) -> Any:
    """The array or list `whole` with `whole[i, ..] = value`.

    In a list a lane's index stands for one element. In an array there is an index for each leading axis that matters:
    an integer, or a vector of valid positions; none stores to the whole array. An integer out of range is a fault at
    `site`.
    """
    if isinstance(whole, list):
        if not whole:
            raise IndexError("list assignment index out of range")
        return replaced_at(whole, value, in_range(indices[0], len(whole), site))
    return _array_stored(tf.convert_to_tensor(whole), value, indices, site)


def _array_stored(array: tf.Tensor, value: Any, indices: Sequence[Any], site: int) -> tf.Tensor:
    """`array` with one or several elements replaced: made of comparisons and choices, which run for all lanes.

    That costs the array. A store into an array that is a variable of its own costs the element (the Store op).
    """
    rank = array.shape.rank
    if len(indices) == 1 and is_bool(indices[0]):
        return masked(array, tf.convert_to_tensor(indices[0]), _element_to_store(array, value))
    if len(indices) > rank:
        raise IndexError(f"too many indices for an array of rank {rank}")
    places = [tf.convert_to_tensor(index) for index in indices]
    vectors = [place.shape[0] for place in places if place.shape.rank == 1]
    value = spread(_element_to_store(array, value), [*vectors, *array.shape[len(places) :]])
    if not places:
        return tf.identity(value)
    hit = tf.ones([1] * rank, tf.bool)
    for axis, place in enumerate(places):
        size = array.shape[axis]
        if place.shape.rank == 0:
            here = tf.range(size) == in_range(place, size, site)
            value = tf.expand_dims(value, axis)
        else:
            table = positions_in(place, size, site)[::-1, None] == tf.range(size)
            here = tf.reduce_any(table, 0)  # the last value that a place gets is the one that it keeps
            last = place.shape[0] - 1 - tf.argmax(tf.cast(table, tf.int32), 0, tf.int32)
            value = tf.gather(value, tf.maximum(last, 0), axis=axis)
        hit &= tf.reshape(here, [1] * axis + [size] + [1] * (rank - axis - 1))
    return tf.where(hit, value, array)


def _element_to_store(array: tf.Tensor, value: Any) -> tf.Tensor:
    """`value` as one or several elements of `array`; TypeError where its dtype does not fit."""
    if is_number(value):
        return commit(value, array.dtype)
    tensor = tf.convert_to_tensor(value)
    if casts_into(tensor.dtype.name, array.dtype.name):
        return tf.cast(tensor, array.dtype)
    if tensor.dtype != array.dtype:
        try:
            join(TensorType(array.dtype.name), TensorType(tensor.dtype.name))
        except ConflictError as error:
            raise TypeError(f"the stored value does not fit: {error.told(spelling)}") from None
    return tensor
