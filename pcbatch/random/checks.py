"""Arguments of draws, checked: dtypes, shapes, bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

FRACTION = {tf.float16: 10, tf.bfloat16: 7, tf.float32: 23, tf.float64: 52}
"""Bits behind the binary point of a uniform draw, which fill the significand of a number in [1, 2)."""


def float_dtype(dtype: Any, what: str = "random floats") -> tf.DType:
    """The dtype, if it is a float's."""
    found = tf.as_dtype(dtype)
    if found not in FRACTION:
        raise TypeError(f"{what} are {', '.join(each.name for each in FRACTION)}, not {found.name}")
    return found


def is_number(value: Any, number: int) -> bool:
    """Return whether `value` is Python's `number`."""
    return isinstance(value, (int, float)) and value == number


def as_tensor(value: Any, name: str, dtype: tf.DType) -> tf.Tensor:
    """`value` as a tensor of exactly `dtype`; numbers convert, tensors of another dtype are refused."""
    given = getattr(value, "dtype", dtype)
    if isinstance(value, tf.Tensor) and given != dtype:
        raise TypeError(f"{name} is {given.name} where {dtype.name} is needed; write tf.cast({name}, tf.{dtype.name})")
    return tf.convert_to_tensor(value, dtype)


def broadcasting(tensor: tf.Tensor, name: str, shape: tuple[int, ...]) -> tf.Tensor:
    """`tensor`, which must broadcast to `shape` without enlarging it."""
    try:
        fits = tf.broadcast_static_shape(tensor.shape, tf.TensorShape(shape)) == tf.TensorShape(shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} has shape {tensor.shape}, which does not broadcast to the shape {list(shape)} of the draw"
        )
    return tensor


def bound(value: Any, name: str, shape: tuple[int, ...], dtype: tf.DType) -> tf.Tensor:
    """A parameter as a tensor of exactly `dtype` that broadcasts to `shape`."""
    return broadcasting(as_tensor(value, name, dtype), name, shape)


def integer_bound(value: Any, name: str, shape: tuple[int, ...], dtype: tf.DType) -> tf.Tensor:
    """A bound as int64, in which both bounds of every int32 range can be written."""
    if isinstance(value, (int, np.integer)):
        if not dtype.min <= value <= min(int(dtype.max) + 1, 2**63 - 1):
            raise ValueError(f"{name} {value} is out of range for {dtype.name}")
        return tf.constant(int(value), tf.int64)
    tensor = tf.convert_to_tensor(value)
    if not tensor.dtype.is_integer or tensor.dtype == tf.uint64:
        raise TypeError(
            f"{name} must be an integer that fits in int64, not {tensor.dtype.name}; write tf.cast({name}, tf.int64)"
        )
    return broadcasting(tf.cast(tensor, tf.int64), name, shape)
