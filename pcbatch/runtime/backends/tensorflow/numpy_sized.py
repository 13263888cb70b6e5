"""NumPy's functions that make an array of some size, for a size that is a lane's value; see `numpy_equivalents`.

A size is one number for all lanes. Where each call of a function hands over a constant, inference sees here that a
shape depends on it, and compiles the function for the constant, with NumPy's own function. Else it says which variable
the shape depends on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent


def _filled(value: int) -> Equivalent:
    def filled(shape: Any, dtype: Any = float) -> tf.Tensor:
        sizes = list(shape) if isinstance(shape, (list, tuple)) else [shape]
        return tf.fill(sizes, np.dtype(dtype).type(value))

    return filled


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> tf.Tensor:
    found = tf.range(start) if stop is None else tf.range(start, stop, step)
    usual = np.float64 if found.dtype.is_floating else np.int64
    return tf.cast(found, np.dtype(usual if dtype is None else dtype))


def _eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = float) -> tf.Tensor:
    rows, columns = tf.range(n)[:, None], tf.range(n if m is None else m)[None, :]
    return tf.cast(tf.equal(columns - rows, k), np.dtype(dtype))


SIZED: dict[str, Equivalent] = {
    "arange": _arange,
    "empty": _filled(0),
    "eye": _eye,
    "identity": lambda n, dtype=float: _eye(n, dtype=dtype),
    "ones": _filled(1),
    "zeros": _filled(0),
}
