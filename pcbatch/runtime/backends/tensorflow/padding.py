"""Arrays with more or fewer elements along their first axis, as calls take and give them.

A small call takes 20 microseconds in all. TensorFlow's functions take as much for each array as that, because they look
at what they are given; the operations alone, on numbers that are kept, take six.
"""

from __future__ import annotations

import functools

import tensorflow as tf


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
