"""Stores as values: arrays with some of their elements replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.joins import ConflictError, casts_into, join
from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.tensorflow import scattering
from pcbatch.runtime.backends.tensorflow.arithmetic import is_bool
from pcbatch.runtime.backends.tensorflow.indexing import in_range, positions_in, replaced_at
from pcbatch.runtime.backends.tensorflow.structures import spelling
from pcbatch.runtime.backends.tensorflow.weak import commit, is_number

ARRAYS = (tf.Tensor, tf.Variable, np.ndarray)


def row(value: Any, whole: Any) -> Any:
    """The tuple or list `value` as an element of the array `whole`; itself where that is a structure."""
    if not isinstance(whole, ARRAYS):
        return value
    array = tf.convert_to_tensor(whole)
    parts = [row(each, array) if isinstance(each, (tuple, list)) else _element_of(array, each) for each in value]
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
        return scattering.masked(array, tf.convert_to_tensor(indices[0]), _element_of(array, value))
    if len(indices) > rank:
        raise IndexError(f"too many indices for an array of rank {rank}")
    places = [tf.convert_to_tensor(index) for index in indices]
    vectors = [place.shape[0] for place in places if place.shape.rank == 1]
    value = scattering.spread(_element_of(array, value), [*vectors, *array.shape[len(places) :]])
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


def _element_of(array: tf.Tensor, value: Any) -> tf.Tensor:
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
