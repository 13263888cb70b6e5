"""Entries of the record of `pcbatch.debug` (`pcbatch.ir.debugging`): values as words of 32 bits."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from pcbatch.ir.debugging import DTYPES, FIRST, LAST, TYPE, WORDS

_HEAD = 3


def record(number: int, text: str, *values: Any) -> tf.Tensor:
    """Return int32 `[WORDS]`: the entry of these values; TypeError for values without words."""
    words = [tf.constant([number], tf.int32)]
    room = (WORDS - 1) // max(len(values), 1)
    for value in values:
        words.append(_words(value, room))
    entry = tf.concat(words, axis=0)
    return tf.pad(entry, [[0, WORDS - entry.shape[0]]])


def recorded(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The row of the next entry, that of the count, which is also its column, and the new count: int32 scalars."""
    count = record[0, 0]
    place = 1 + tf.where(count < FIRST, count, FIRST + (count - FIRST) % LAST)
    return place, tf.zeros_like(count), count + 1


def unrecorded() -> tf.Tensor:
    """A record without entries."""
    return tf.zeros(TYPE.shape, tf.int32)


def _words(value: Any, room: int) -> tf.Tensor:
    try:
        tensor = tf.convert_to_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(f"pcbatch.debug shows numbers and arrays, no {type(value).__name__}: give its parts") from None
    name = tensor.dtype.name
    if name not in DTYPES:
        raise TypeError(f"pcbatch.debug shows numbers and arrays, nothing of dtype {name}")
    sizes = tensor.shape.as_list()
    kept_as, each = DTYPES[name]
    kept = min(math.prod(sizes), (room - _HEAD - len(sizes)) // each)
    if kept < min(1, math.prod(sizes)):
        raise TypeError("pcbatch.debug shows fewer values at a time: write several of it")
    head = tf.constant([1 + [*DTYPES].index(name), len(sizes), kept, *sizes], tf.int32)
    flat = tf.cast(tf.reshape(tensor, [-1])[:kept], kept_as)
    return tf.concat([head, tf.reshape(_bits(flat), [-1])], axis=0)


def _bits(flat: tf.Tensor) -> tf.Tensor:
    if flat.dtype == tf.int32:
        return flat
    if flat.dtype.is_complex:
        flat = tf.stack([tf.math.real(flat), tf.math.imag(flat)], axis=-1)
    return tf.bitcast(flat, tf.int32)
