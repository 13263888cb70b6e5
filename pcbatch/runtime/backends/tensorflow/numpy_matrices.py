"""NumPy's products and linear algebra, for values of lanes; see `numpy_equivalents`."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.arithmetic import widened
from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact
from pcbatch.runtime.backends.tensorflow.operators import matrix_product


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
