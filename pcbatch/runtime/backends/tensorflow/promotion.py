"""Numbers that meet: an int has the dtype of a float beside it, two ints or two floats the wider, a bool is an int."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.joins import meeting


def is_bool(value: Any) -> bool:
    """Return whether `value` is a bool, Python's or NumPy's, or an array of bools."""
    return isinstance(value, (bool, np.bool_)) or getattr(value, "dtype", None) in (tf.bool, np.bool_)


def is_flag(value: Any) -> bool:
    """Return whether `value` is one bool."""
    return is_bool(value) and len(getattr(value, "shape", ())) == 0


def wrapped(number: int, dtype: tf.DType) -> int:
    """`number` as `dtype` holds it: of a negative one TensorFlow makes another uint64 outside of graphs, or raises."""
    return number % 2**64 if number < 0 and dtype == tf.uint64 else number


def loses(own: tf.DType, wanted: tf.DType) -> bool:
    """Return whether a conversion of dtypes may change a number: 0.5 to an int, 2 to a bool."""
    if own == wanted or own == tf.bool:
        return False
    is_exact = wanted.is_integer and not own.is_integer
    return bool(wanted == tf.bool or is_exact or (own.is_complex and not wanted.is_complex))


def widened(a: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Two tensors as ones of the dtype in which they meet; TypeError where there is none."""
    if a.dtype == b.dtype:
        return a, b
    wider = meeting(a.dtype.name, b.dtype.name)
    if wider is None:
        raise TypeError(f"dtypes {a.dtype.name} and {b.dtype.name} differ; write tf.cast(.., tf.{a.dtype.name})")
    return tf.cast(a, wider), tf.cast(b, wider)
