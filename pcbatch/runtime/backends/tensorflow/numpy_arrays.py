"""NumPy's functions of whole arrays, for values of lanes: reductions, matrices, arranging; see `numpy_equivalents`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact, truth
from pcbatch.runtime.backends.tensorflow.weak import carrier, is_lane_value, unify

# -- reductions --------------------------------------------------------------------------------------------------------


def _reduction(function: Callable[..., tf.Tensor], of: Callable[[tf.Tensor], tf.Tensor] = tf.identity) -> Equivalent:
    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
        return function(of(array(a)), axis=axis, keepdims=keepdims)

    return reduced


def _numbers(x: tf.Tensor) -> tf.Tensor:
    return tf.cast(x, tf.int64) if x.dtype == tf.bool else x


def _position(function: Callable[..., tf.Tensor]) -> Equivalent:
    """The place of the first NaN, if there is one; of the extreme otherwise."""

    def position(a: Any, axis: int | None = None) -> tf.Tensor:
        x = array(a)
        x, axis = (tf.reshape(x, [-1]), 0) if axis is None else (x, axis)
        found = function(x, axis=axis)
        if not x.dtype.is_floating:
            return found
        lost = tf.math.is_nan(x)
        return tf.where(tf.reduce_any(lost, axis=axis), tf.argmax(tf.cast(lost, tf.int32), axis=axis), found)

    return position


def _cumulative(a: Any, axis: int | None = None) -> tf.Tensor:
    x = _numbers(array(a))
    return tf.cumsum(tf.reshape(x, [-1]) if axis is None else x, axis=axis or 0)


REDUCTIONS: dict[str, Equivalent] = {
    "all": _reduction(tf.reduce_all, truth),
    "any": _reduction(tf.reduce_any, truth),
    "argmax": _position(tf.argmax),
    "argmin": _position(tf.argmin),
    "cumsum": _cumulative,
    "max": _reduction(tf.reduce_max),
    "mean": _reduction(tf.reduce_mean, inexact),
    "min": _reduction(tf.reduce_min),
    "prod": _reduction(tf.reduce_prod, _numbers),
    "std": _reduction(tf.math.reduce_std, inexact),
    "sum": _reduction(tf.reduce_sum, _numbers),
    "var": _reduction(tf.math.reduce_variance, inexact),
}

# -- matrices ----------------------------------------------------------------------------------------------------------


def _dot(a: Any, b: Any) -> Any:
    """Sums over the last axis of `a` and the last but one of `b`; of a vector over its only axis."""
    x, y, _ = unify(array(a), array(b))
    if x.shape.rank == 0 or y.shape.rank == 0:
        return x * y
    return tf.tensordot(x, y, axes=[[x.shape.rank - 1], [max(y.shape.rank - 2, 0)]])


def _matmul(a: Any, b: Any) -> tf.Tensor:
    x, y, _ = unify(array(a), array(b))
    return _dot(x, y) if min(x.shape.rank, y.shape.rank) < 2 else tf.matmul(x, y)


def _norm(x: Any) -> tf.Tensor:
    """The length of a vector, or of a matrix as one."""
    return tf.sqrt(tf.reduce_sum(tf.square(tf.abs(inexact(array(x))))))


def _solve(a: Any, b: Any) -> tf.Tensor:
    matrix, right = inexact(array(a)), inexact(array(b))
    if right.shape.rank == 1:
        return tf.linalg.solve(matrix, right[:, None])[:, 0]
    return tf.linalg.solve(matrix, right)


MATRICES: dict[str, Equivalent] = {
    "dot": _dot,
    "inner": lambda a, b: tf.tensordot(array(a), array(b), axes=[[-1], [-1]]),
    "matmul": _matmul,
    "outer": lambda a, b: tf.reshape(array(a), [-1, 1]) * tf.reshape(array(b), [1, -1]),
    "trace": lambda a: tf.linalg.trace(array(a)),
    "linalg.cholesky": lambda a: tf.linalg.cholesky(inexact(array(a))),
    "linalg.det": lambda a: tf.linalg.det(inexact(array(a))),
    "linalg.inv": lambda a: tf.linalg.inv(inexact(array(a))),
    "linalg.norm": _norm,
    "linalg.solve": _solve,
}

# -- making and arranging arrays ---------------------------------------------------------------------------------------


def made(x: Any, dtype: Any = None) -> tf.Tensor:
    """`x` as a tensor, of `dtype` if there is one."""
    return array(x) if dtype is None else tf.cast(carrier(x) if is_lane_value(x) else array(x), dtype)


def _like(fill: Callable[[tf.Tensor], tf.Tensor]) -> Equivalent:
    return lambda a, dtype=None: made(fill(array(a)), dtype)


def _full(shape: Any, fill_value: Any, dtype: Any = None) -> tf.Tensor:
    return tf.fill(shape if isinstance(shape, (list, tuple)) else [shape], made(fill_value, dtype))


def _ravel(a: Any) -> tf.Tensor:
    return tf.reshape(array(a), [-1])


def _flip(a: Any, axis: int | None = None) -> tf.Tensor:
    x = array(a)
    return tf.reverse(x, list(range(x.shape.rank)) if axis is None else [axis])


def _roll(a: Any, shift: int, axis: int | None = None) -> tf.Tensor:
    x = array(a)
    return tf.reshape(tf.roll(_ravel(x), shift, 0), x.shape) if axis is None else tf.roll(x, shift, axis)


def _sort(a: Any) -> tf.Tensor:
    """Along the last axis, NaN after infinity."""
    x = array(a)
    if not x.dtype.is_floating:
        return tf.sort(x)
    lost = tf.math.is_nan(x)
    numbers = tf.sort(tf.where(lost, tf.constant(math.inf, x.dtype), x))
    count = tf.reduce_sum(tf.cast(lost, tf.int32), axis=-1, keepdims=True)
    last = tf.range(x.shape[-1]) >= x.shape[-1] - count
    return tf.where(last, tf.constant(math.nan, x.dtype), numbers)


ARRANGING: dict[str, Equivalent] = {
    "array": made,
    "asarray": made,
    "concatenate": lambda arrays, axis=0: tf.concat([array(a) for a in arrays], axis),
    "diff": lambda a: array(a)[..., 1:] - array(a)[..., :-1],
    "expand_dims": lambda a, axis: tf.expand_dims(array(a), axis),
    "flip": _flip,
    "full": _full,
    "ones_like": _like(tf.ones_like),
    "ravel": _ravel,
    "reshape": lambda a, shape: tf.reshape(array(a), shape),
    "roll": _roll,
    "sort": _sort,
    "squeeze": lambda a, axis=None: tf.squeeze(array(a), axis),
    "stack": lambda arrays, axis=0: tf.stack([array(a) for a in arrays], axis),
    "transpose": lambda a, axes=None: tf.transpose(array(a), axes),
    "zeros_like": _like(tf.zeros_like),
}
