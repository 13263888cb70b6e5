"""NumPy's functions of vectors of samples: interpolation, polynomials, filters, areas; and those that make arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact
from pcbatch.runtime.backends.tensorflow.numpy_matrices import pair
from pcbatch.runtime.backends.tensorflow.weak import is_number, unify


def _vector(x: Any, like: tf.Tensor) -> tf.Tensor:
    """Samples in floating point, of the dtype of `like` where they are ints."""
    given = array(x)
    return given if given.dtype.is_floating or given.dtype.is_complex else tf.cast(given, like.dtype)


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> tf.Tensor:
    """Linear between the points `xp`, which increase; the first and the last value outside of them."""
    places, values = inexact(array(xp)), inexact(array(fp))
    at = unify(x, places)[0] if is_number(x) else inexact(array(x))
    inside = tf.expand_dims(at, -1) >= places
    below = tf.clip_by_value(tf.reduce_sum(tf.cast(inside, tf.int32), -1) - 1, 0, max(places.shape[0] - 2, 0))
    above = tf.minimum(below + 1, places.shape[0] - 1)
    low, high = tf.gather(places, below), tf.gather(places, above)
    first, second = tf.gather(values, below), tf.gather(values, above)
    width = tf.where(high > low, high - low, tf.ones_like(low))
    found = first + (second - first) / width * (at - low)
    found = tf.where(at >= places[-1], values[-1] if right is None else unify(right, values)[0], found)
    if right is not None:
        found = tf.where(tf.equal(at, places[-1]), values[-1], found)
    found = tf.where(at < places[0], values[0] if left is None else unify(left, values)[0], found)
    return tf.where(tf.math.is_nan(at), at, found)


def _polyval(p: Any, x: Any) -> Any:
    """Evaluate a polynomial by Horner's rule, the highest power first."""
    coefficients = [*p] if isinstance(p, (list, tuple)) else tf.unstack(array(p))
    found: Any = 0 * x  # NaN for infinity, as NumPy has it
    for coefficient in coefficients:
        found = found * x + coefficient
    return found


def _convolve(a: Any, v: Any, mode: str = "full") -> tf.Tensor:
    x, y = pair(a, v)
    if x.shape[0] < y.shape[0]:
        x, y = y, x
    m, n = x.shape[0], y.shape[0]
    padded = tf.pad(x, [[n - 1, n - 1]])
    windows = tf.gather(padded, tf.range(m + n - 1)[:, None] + tf.range(n)[None, :])
    places = np.arange(m + n - 1)[:, None] + np.arange(n)[None, :] - (n - 1)
    products = windows * tf.reverse(y, [0])[None, :]
    products = tf.where((places >= 0) & (places < m), products, tf.zeros_like(products))  # not 0 times infinity
    full = tf.reduce_sum(products, axis=1)
    start, count = {"full": (0, m + n - 1), "same": ((n - 1) // 2, m), "valid": (n - 1, m - n + 1)}[mode]
    return full[start : start + count]


def _correlate(a: Any, v: Any, mode: str = "valid") -> tf.Tensor:
    x, y = pair(a, v)
    if x.shape[0] < y.shape[0]:
        return tf.reverse(_correlate(y, x, mode), [0])
    return _convolve(x, tf.reverse(y, [0]), mode)


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> tf.Tensor:
    values = inexact(array(y))
    if axis not in (-1, values.shape.rank - 1):
        raise TypeError("np.trapezoid of a lane's values goes along the last axis")
    means = (values[..., 1:] + values[..., :-1]) / 2
    if x is None:
        return tf.reduce_sum(means, axis=-1) * dx
    places = _vector(x, values)
    return tf.reduce_sum(means * (places[..., 1:] - places[..., :-1]), axis=-1)


def _gradient(f: Any, spacing: Any = 1.0) -> tf.Tensor:
    """Return the differences of a vector: halves of those over two steps, and those over one at the ends."""
    values = inexact(array(f))
    if values.shape.rank != 1 or not (is_number(spacing) or array(spacing).shape.rank == 0):
        raise TypeError("np.gradient of a lane's values takes a vector and one step")
    ends = values[1:2] - values[:1], values[-1:] - values[-2:-1]
    return tf.concat([ends[0], (values[2:] - values[:-2]) / 2, ends[1]], 0) / spacing


def _diff(a: Any, n: int = 1, axis: int = -1) -> tf.Tensor:
    x = array(a)
    axis = axis % x.shape.rank
    for _ in range(n):
        size = x.shape[axis]
        parts = [tf.gather(x, tf.range(start, size + start - 1), axis=axis) for start in (1, 0)]
        x = tf.not_equal(*parts) if x.dtype == tf.bool else parts[0] - parts[1]
    return x


def _unwrap(p: Any) -> tf.Tensor:
    x = inexact(array(p))
    steps = x[1:] - x[:-1]
    turned = tf.math.floormod(steps + math.pi, 2 * math.pi) - math.pi
    turned = tf.where((turned == -math.pi) & (steps > 0), tf.constant(math.pi, x.dtype), turned)
    change = tf.where(tf.abs(steps) < math.pi, tf.zeros_like(steps), turned - steps)
    return tf.concat([x[:1], x[1:] + tf.cumsum(change)], 0)


def _transform(function: Callable[..., tf.Tensor], *, is_real: bool = False) -> Equivalent:
    """Return a Fourier transform along the whole last axis; `is_real` if it takes real numbers."""

    def transformed(a: Any) -> tf.Tensor:
        x = inexact(array(a))
        if is_real:
            return function(x)
        is_single = x.dtype in (tf.float32, tf.complex64)
        return function(tf.cast(x, tf.complex64 if is_single else tf.complex128))

    return transformed


SERIES: dict[str, Equivalent] = {
    "convolve": _convolve,
    "correlate": _correlate,
    "diff": _diff,
    "fft.fft": _transform(tf.signal.fft),
    "fft.ifft": _transform(tf.signal.ifft),
    "fft.irfft": _transform(tf.signal.irfft),
    "fft.rfft": _transform(tf.signal.rfft, is_real=True),
    "gradient": _gradient,
    "interp": _interp,
    "polyval": _polyval,
    "trapezoid": _trapezoid,
    "unwrap": _unwrap,
}


# NumPy's functions that make an array of some size, for a size that is a lane's value; see `numpy_equivalents`.
#
# A size is one number for all lanes. Where each call of a function hands over a constant, inference sees here that a
# shape depends on it, and compiles the function for the constant, with NumPy's own function. Else it says which
# variable the shape depends on.


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
