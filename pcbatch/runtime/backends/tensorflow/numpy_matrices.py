"""NumPy's products and linear algebra, and its functions of vectors of samples, for values of lanes.

The latter are interpolation, polynomials, filters and areas, and functions that make arrays. See `numpy_equivalents`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.arithmetic import widened
from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact
from pcbatch.runtime.backends.tensorflow.operators import matrix_product
from pcbatch.runtime.backends.tensorflow.weak import is_number, unify


def pair(a: Any, b: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Two arrays of one dtype."""
    return widened(array(a), array(b))


def _dot(a: Any, b: Any) -> Any:
    """Sums over the last axis of `a` and the last but one of `b`; of a vector over its only axis."""
    x, y = pair(a, b)
    if x.shape.rank == 0 or y.shape.rank == 0:
        return x * y
    return tf.tensordot(x, y, axes=[[x.shape.rank - 1], [max(y.shape.rank - 2, 0)]])


def _tensordot(a: Any, b: Any, axes: Any = 2) -> tf.Tensor:
    return tf.tensordot(*pair(a, b), axes)


def _outer(a: Any, b: Any) -> tf.Tensor:
    x, y = pair(a, b)
    return tf.reshape(x, [-1, 1]) * tf.reshape(y, [1, -1])


def _vdot(a: Any, b: Any) -> tf.Tensor:
    x, y = pair(a, b)
    x = tf.math.conj(x) if x.dtype.is_complex else x
    return tf.reduce_sum(tf.reshape(x, [-1]) * tf.reshape(y, [-1]))


def _kron(a: Any, b: Any) -> tf.Tensor:
    x, y = pair(a, b)
    if x.shape.rank != y.shape.rank:
        raise TypeError("np.kron of a lane's values takes two vectors or two matrices")
    spread = tf.tensordot(x, y, 0)
    rank = x.shape.rank
    order = [axis for each in range(rank) for axis in (each, rank + each)]
    sizes = [m * n for m, n in zip(x.shape, y.shape, strict=True)]
    return tf.reshape(tf.transpose(spread, order), sizes)


def _cross(a: Any, b: Any) -> tf.Tensor:
    """Return the cross product of vectors of three numbers, or of two as NumPy had it."""
    x, y = pair(a, b)
    if x.shape[-1] == y.shape[-1] == 2:
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    return tf.linalg.cross(*([tf.broadcast_to(each, tf.broadcast_static_shape(x.shape, y.shape)) for each in (x, y)]))


def _norm(x: Any, ord: Any = None, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
    """The length of a vector, or of a matrix as one; 1, 2 and infinity along one axis."""
    size = tf.abs(inexact(array(x)))
    if ord in (None, "fro") or (ord == 2 and (axis is not None or size.shape.rank == 1)):
        return tf.sqrt(tf.reduce_sum(tf.square(size), axis=axis, keepdims=keepdims))
    if axis is None and size.shape.rank != 1:
        raise TypeError("np.linalg.norm of a lane's matrix has no `ord`; it is the root of the sum of squares")
    if ord == math.inf:
        return tf.reduce_max(size, axis=axis, keepdims=keepdims)
    if ord == 1:
        return tf.reduce_sum(size, axis=axis, keepdims=keepdims)
    raise TypeError("np.linalg.norm of a lane's values takes the `ord` 1, 2 and np.inf")


def _solve(a: Any, b: Any) -> tf.Tensor:
    matrix, right = inexact(array(a)), inexact(array(b))
    if right.shape.rank == 1:
        return tf.linalg.solve(matrix, right[:, None])[:, 0]
    return tf.linalg.solve(matrix, right)


LARGEST = 32
"""Rows up to which a determinant is written out."""


def _det(a: Any) -> tf.Tensor:
    """Return the determinant by elimination with the largest pivot, step by step: XLA has none."""
    rest = inexact(array(a))
    if rest.shape.rank != 2 or rest.shape[0] > LARGEST:
        return tf.linalg.det(rest)
    found = tf.ones([], rest.dtype)
    for _ in range(rest.shape[0]):
        size = rest.shape[0]
        place = tf.argmax(tf.abs(rest[:, 0]), output_type=tf.int32)
        row = tf.gather(rest, place)
        found = found * tf.where(place == 0, row[0], -row[0])
        rows = tf.where(tf.range(size) == place, 0, tf.range(size))[1:]  # the first one stands in for it
        others = tf.gather(rest, rows)
        pivot = tf.where(tf.equal(row[0], 0), tf.ones_like(row[0]), row[0])
        rest = others[:, 1:] - others[:, :1] / pivot * row[None, 1:]
    return found


def _eigh(a: Any) -> tuple[tf.Tensor, tf.Tensor]:
    values, vectors = tf.linalg.eigh(inexact(array(a)))
    return values, vectors


def _matrix_power(a: Any, n: int) -> tf.Tensor:
    x = array(a)
    if n < 0:
        return _matrix_power(tf.linalg.inv(inexact(x)), -n)
    found = tf.eye(x.shape[-1], dtype=x.dtype)
    while n:
        found = tf.matmul(found, x) if n % 2 else found
        x, n = tf.matmul(x, x) if n > 1 else x, n // 2
    return found


def _einsum(equation: str, *operands: Any) -> tf.Tensor:
    return tf.einsum(equation, *map(array, operands))


def _svd(a: Any, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return tf.linalg.svd(inexact(array(a)), compute_uv=False)
    sizes, left, right = tf.linalg.svd(inexact(array(a)), full_matrices)
    return left, sizes, tf.linalg.adjoint(right)


def _slogdet(a: Any) -> tuple[tf.Tensor, tf.Tensor]:
    found = tf.linalg.slogdet(inexact(array(a)))
    return found.sign, found.log_abs_determinant


MATRICES: dict[str, Equivalent] = {
    "cross": _cross,
    "dot": _dot,
    "einsum": _einsum,
    "inner": lambda a, b: tf.tensordot(*pair(a, b), axes=[[-1], [-1]]),
    "kron": _kron,
    "matmul": matrix_product,
    "outer": _outer,
    "tensordot": _tensordot,
    "vdot": _vdot,
    "linalg.cholesky": lambda a: tf.linalg.cholesky(inexact(array(a))),
    "linalg.det": _det,
    "linalg.eigh": _eigh,
    "linalg.eigvalsh": lambda a: tf.linalg.eigvalsh(inexact(array(a))),
    "linalg.inv": lambda a: tf.linalg.inv(inexact(array(a))),
    "linalg.matrix_power": _matrix_power,
    "linalg.norm": _norm,
    "linalg.pinv": lambda a: tf.linalg.pinv(inexact(array(a))),
    "linalg.slogdet": _slogdet,
    "linalg.solve": _solve,
    "linalg.svd": _svd,
}


# -- vectors of samples ------------------------------------------------------------------------------------------------


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
