"""Arrays of TensorFlow: whole batches of numbers, and the machine's operations on them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.types import TensorType
from pcbatch.runtime.backends.tensorflow import private, raw_ops, stores
from pcbatch.runtime.backends.tensorflow.xla_cpu import gathering, lane_arrays

# -- padding -----------------------------------------------------------------------------------------------------------
# Arrays with more or fewer elements along their first axis, as calls take and give them.
#
# A small call takes 20 microseconds in all. TensorFlow's functions take as much for each array as that, because they
# look at what they are given; the operations alone, on numbers that are kept, take six.


def extended(array: tf.Tensor, length: int) -> tf.Tensor:
    """`array`, which has elements, with its last one again and again, so that there are so many."""
    if not isinstance(array, tf.Tensor) or not tf.executing_eagerly():
        return tf.gather(array, tf.minimum(tf.range(length), tf.shape(array)[0] - 1))
    return tf.raw_ops.GatherV2(params=array, indices=_places(array.shape[0], length), axis=_zero())


def first(array: tf.Tensor, length: tf.Tensor | int) -> tf.Tensor:
    """The first elements of `array`, so many."""
    if not tf.executing_eagerly() or not isinstance(length, int):
        return array[:length]
    return tf.raw_ops.Slice(input=array, begin=_zeros(array.shape.rank), size=_size(length, array.shape.rank))


@functools.lru_cache(1024)
def _places(count: int, length: int) -> tf.Tensor:
    return tf.constant([min(place, count - 1) for place in range(length)], tf.int32)


@functools.cache
def _zero() -> tf.Tensor:
    return tf.constant(0, tf.int32)


@functools.cache
def _zeros(rank: int) -> tf.Tensor:
    return tf.constant([0] * rank, tf.int32)


@functools.lru_cache(1024)
def _size(length: int, rank: int) -> tf.Tensor:
    return tf.constant([length, *[-1] * (rank - 1)], tf.int32)


# -- arrays ------------------------------------------------------------------------------------------------------------

_from_dlpack = private.from_dlpack()


class TensorFlowArrays:
    """See `arrays.Arrays`."""

    # -- making arrays -------------------------------------------------------------------------------------------------

    def zeros(self, lanes: Any, type_: TensorType, entries: Any = None) -> tf.Tensor:
        shape = (*(() if lanes is None else (lanes,)), *(() if entries is None else (entries,)), *type_.shape)
        if not isinstance(lanes, int | None) or entries is not None:
            return tf.zeros(shape, type_.dtype)
        return raw_ops.once(("zeros", shape, type_.dtype), lambda: tf.zeros(shape, type_.dtype))

    made_apart = staticmethod(lane_arrays.made_apart)

    def constant(self, value: int | bool) -> tf.Tensor:
        return raw_ops.constant(value, tf.bool) if isinstance(value, bool) else raw_ops.constant(int(value))

    array = staticmethod(raw_ops.array)

    def adopted(self, array: np.ndarray) -> tf.Tensor:
        if array.dtype.isbuiltin != 1:  # such as bfloat16, of which NumPy knows no name that others know
            return raw_ops.array(array, array.dtype.name)
        return _from_dlpack(array.__dlpack__())

    def numpy_of(self, array: tf.Tensor) -> np.ndarray:
        found: np.ndarray = array.numpy()
        return found

    def lane_numbers(self, lanes: Any) -> tf.Tensor:
        return raw_ops.numbers(lanes) if isinstance(lanes, int) else tf.range(lanes, dtype=tf.int32)

    def lanes_of(self, array: tf.Tensor, axis: int = 0) -> Any:
        static = array.shape[axis]
        return tf.shape(array)[axis] if static is None else static

    def lengthen(self, stack: tf.Tensor, entries: Any) -> tf.Tensor:
        return tf.pad(stack, [[0, 0], [0, entries - self.lanes_of(stack, 1)]] + [[0, 0]] * (len(stack.shape) - 2))

    def extended(self, array: tf.Tensor, length: int) -> tf.Tensor:
        return extended(array, length)

    # -- elementwise ---------------------------------------------------------------------------------------------------

    def cast(self, array: tf.Tensor, dtype: str) -> tf.Tensor:
        return raw_ops.cast(array, tf.as_dtype(dtype))

    def equal(self, array: tf.Tensor, number: int) -> tf.Tensor:
        return raw_ops.equal(array, raw_ops.constant(number, array.dtype))

    add = staticmethod(raw_ops.add)
    both = staticmethod(raw_ops.both)

    def where(self, mask: Any, new: Any, old: Any) -> Any:
        if isinstance(mask, list | tuple):
            return lane_arrays.in_succession(self.where, mask, new, old)
        trailing = max(new.shape.rank, old.shape.rank) - mask.shape.rank
        if trailing > 0 and mask.shape.rank:
            mask = raw_ops.reshape(mask, (-1 if mask.shape[0] is None else mask.shape[0], *[1] * trailing))
        return raw_ops.select(mask, new, old)

    once_there = staticmethod(lane_arrays.once_there)

    # -- rows and elements ---------------------------------------------------------------------------------------------

    listed = staticmethod(lane_arrays.listed)

    def load(self, array: tf.Tensor, indices: Sequence[tf.Tensor], lanes: tf.Tensor | None = None) -> tf.Tensor:
        lanes = self.lane_numbers(self.lanes_of(array)) if lanes is None else lanes
        sizes = [self.lanes_of(array, 1), *array.shape[2:]] if indices else []
        # Junk rows may point anywhere, at which the CPU kernel of a gather would raise.
        clipped = [tf.clip_by_value(index, 0, size - 1) for index, size in zip(indices, sizes, strict=False)]
        if any(index.shape.rank > 1 for index in clipped):
            return tf.gather_nd(array, stores.combined([lanes, *clipped]))
        return gathering.gather_by_lane(array, lanes, clipped)

    def masked_store(
        self,
        array: tf.Tensor,
        indices: Sequence[tf.Tensor],
        mask: tf.Tensor,
        value: tf.Tensor,
        lanes: tf.Tensor | None = None,
        *,
        adds: bool = False,
    ) -> tf.Tensor:
        write = stores.added if adds else stores.written
        return write(array, [self._taking_part(array, mask, lanes), *indices], value)

    def _taking_part(self, array: tf.Tensor, mask: tf.Tensor, lanes: tf.Tensor | None) -> tf.Tensor:
        """The lanes of rows; those that take no part get one that does not exist."""
        count = self.lanes_of(array)
        lanes = self.lane_numbers(count) if lanes is None else lanes
        return raw_ops.select(mask, lanes, raw_ops.constant(count, lanes.dtype) if isinstance(count, int) else count)

    with_rows = staticmethod(lane_arrays.with_rows)

    def rows_at(self, array: Any, start: Any, count: Any) -> Any:
        if isinstance(start, int) and start == 0:
            return first(array, count) if isinstance(array, tf.Tensor) else array[:count]
        return tf.slice(array, [start, *(0 for _ in array.shape[1:])], [count, *array.shape[1:]])

    def unspread(self, array: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
        new = array.shape.rank - 1 - len(shape)
        summed = tf.reduce_sum(array, axis=list(range(1, 1 + new)))
        axes = [at for at, size in enumerate(shape, 1) if size == 1 and summed.shape[at] != 1]
        return tf.reduce_sum(summed, axis=axes, keepdims=True)

    def live(self, array: tf.Tensor, mask: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
        return tf.reshape(tf.boolean_mask(array, mask), [-1, *shape])

    def summed_by_number(self, rows: tf.Tensor, numbers: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        each, place = tf.unique(numbers)
        return tf.math.unsorted_segment_sum(rows, place, tf.size(each)), each

    def rows_of_table(self, rows: tf.Tensor, numbers: tf.Tensor, table: TensorType) -> tf.IndexedSlices:
        # Each once: optimizers of Keras square what they are given for a row part by part, and not the sum.
        return tf.IndexedSlices(rows, numbers, raw_ops.shape(table.shape))

    def sum_of_gradients(self, one: Any, other: Any) -> Any:
        if not isinstance(one, tf.IndexedSlices):
            return one + other
        rows, numbers = tf.concat([one.values, other.values], 0), tf.concat([one.indices, other.indices], 0)
        return tf.IndexedSlices(*self.summed_by_number(rows, numbers), one.dense_shape)

    def sum_rows(
        self, array: tf.Tensor, mask: tf.Tensor, lanes: tf.Tensor | None = None, count: Any = None
    ) -> tf.Tensor:
        some = self.where(mask, array, tf.zeros([], array.dtype))
        return tf.reduce_sum(some, axis=0) if lanes is None else tf.math.unsorted_segment_sum(some, lanes, count)

    # -- over all lanes ------------------------------------------------------------------------------------------------

    def counted(self, mask: tf.Tensor) -> tf.Tensor:
        return tf.cumsum(tf.cast(mask, tf.int32))

    ranks = staticmethod(lane_arrays.ranks)

    def marked(self, size: Any, numbers: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        nobody = tf.zeros([size], tf.int32)  # XLA scatters numbers six times faster than bools
        return stores.written(nobody, [tf.where(mask, numbers, size)], tf.ones_like(numbers)) > 0

    def any(self, mask: tf.Tensor, *, by_lane: bool = False) -> tf.Tensor:
        return tf.reduce_any(mask, axis=list(range(1, mask.shape.rank)) if by_lane else None)

    def sum(self, array: tf.Tensor, weights: Sequence[float] | None = None) -> tf.Tensor:
        if weights is None:
            return tf.reduce_sum(tf.cast(array, tf.int32))
        return tf.reduce_sum(tf.cast(array, tf.float32) * tf.constant(list(weights), tf.float32))

    min = staticmethod(tf.reduce_min)
    max = staticmethod(tf.reduce_max)

    tally = staticmethod(lane_arrays.tally)
    stack = staticmethod(lane_arrays.stack)

    def joined(self, *vectors: tf.Tensor) -> tf.Tensor:
        return tf.concat(vectors, axis=0)

    unstack = staticmethod(raw_ops.unstack)
