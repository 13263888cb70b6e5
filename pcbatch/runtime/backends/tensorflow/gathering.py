"""Reading rows of a large array, on CPU without the threads that XLA would start for it.

XLA reckons that a gather which it has fused with other work reads the whole array. From 512 KiB on it splits the few
rows that are read between threads, and starting those takes far longer than reading: 64 lanes that read one element of
10,000 each take 2 to 9 us instead of 0.3. What XLA never splits is an update of a part of an array in place; so large
arrays are read by one, in a conditional of its own, as elsewhere the update would be fused with what follows.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar

import tensorflow as tf

SPLIT = 512 * 1024
"""Bytes from which on XLA's CPU compiler splits a loop that reads them: two threads' worth of its `L2 Cache size`."""


_holding: ContextVar[tf.Tensor | None] = ContextVar("holding", default=None)
"""A bool scalar that holds wherever the operations run that are being made, and that XLA cannot know to hold."""


@contextlib.contextmanager
def holds(predicate: tf.Tensor) -> Iterator[None]:
    """What is made inside runs only where `predicate` holds: a guard's, say."""
    token = _holding.set(predicate)
    try:
        yield
    finally:
        _holding.reset(token)


def gather(array: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """`array[rows]`, `[n, ...]`, for int32 `rows` `[n]` that all exist."""
    elements = array.shape.num_elements()
    if elements is None or not rows.shape.num_elements() or not is_split(elements, array.dtype):
        return tf.gather(array, rows)
    count = rows.shape[0]
    holding = _holding.get()
    here = rows[0] >= 0 if holding is None else holding
    # Twice as long, for XLA simplifies an update of everything; no constant, which XLA would put into the conditional
    # and fuse with the update, so that there would be nothing to update in place.
    target = tf.fill([2 * count, *array.shape[1:]], tf.cast(~here, array.dtype))

    def read() -> tf.Tensor:
        value = tf.gather(array, rows)
        return tf.raw_ops.TensorStridedSliceUpdate(input=target, begin=[0], end=[count], strides=[1], value=value)

    return tf.cond(here, read, lambda: target)[:count]


def is_split(elements: int, dtype: tf.DType) -> bool:
    """Whether XLA would split reading from an array of so many elements between threads."""
    return elements * dtype.size >= SPLIT and elements < 2**31 and not tf.config.list_physical_devices("GPU")


def gather_by_lane(array: tf.Tensor, lanes: tf.Tensor, indices: list[tf.Tensor]) -> tf.Tensor:
    """`array[lane, i, j, ..]` for the rows of int32 `lanes` and `indices`, `[n]` each, all within the array."""
    depth = 1 + len(indices)
    elements = array.shape.num_elements()
    if elements is None or not is_split(elements, array.dtype):
        return tf.gather_nd(array, tf.stack([lanes, *indices], axis=-1))
    place = lanes
    for index, size in zip(indices, array.shape[1:], strict=False):
        place = place * size + index
    return gather(tf.reshape(array, [math.prod(array.shape[:depth]), *array.shape[depth:]]), place)
