"""NumPy's reductions, for values of lanes: sums, extremes and their places, means; see `numpy_equivalents`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_arrays import made
from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact, summands, truth


def _reduction(function: Callable[..., tf.Tensor], of: Callable[[tf.Tensor], tf.Tensor] = tf.identity) -> Equivalent:
    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
        return function(of(array(a)), axis=axis, keepdims=keepdims)

    return reduced


def _extreme(function: Callable[..., tf.Tensor], of_bools: Callable[..., tf.Tensor]) -> Equivalent:
    """`np.max` and `np.min`, which nothing has that is empty."""

    def extreme(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
        x = array(a)
        found = (of_bools if x.dtype == tf.bool else function)(x, axis=axis, keepdims=keepdims)
        if x.shape.num_elements() == 0 and found.shape.num_elements():
            raise ValueError("an empty array has no maximum and no minimum")
        return found

    return extreme


def _position(function: Callable[..., tf.Tensor]) -> Equivalent:
    """The place of the first NaN, if there is one; of the extreme otherwise."""

    def position(a: Any, axis: int | None = None) -> tf.Tensor:
        x = array(a)
        x, axis = (tf.reshape(x, [-1]), 0) if axis is None else (x, axis)
        if x.shape[axis] == 0:
            raise ValueError("an empty array has no maximum and no minimum")
        found = function(x, axis=axis)
        if not x.dtype.is_floating:
            return found
        lost = tf.math.is_nan(x)
        return tf.where(tf.reduce_any(lost, axis=axis), tf.argmax(tf.cast(lost, tf.int32), axis=axis), found)

    return position


def _cumulative(function: Callable[..., tf.Tensor]) -> Equivalent:
    def cumulated(a: Any, axis: int | None = None) -> tf.Tensor:
        x = summands(array(a))
        return function(tf.reshape(x, [-1]) if axis is None else x, axis=axis or 0)

    return cumulated


def _average(a: Any, axis: Any = None, weights: Any = None) -> tf.Tensor:
    x = inexact(array(a))
    if weights is None:
        return tf.reduce_mean(x, axis=axis)
    heavy = made(weights, x.dtype)
    if axis is not None and heavy.shape.rank == 1:
        heavy = tf.reshape(heavy, [-1] + [1] * (x.shape.rank - axis % x.shape.rank - 1))
    heavy = tf.broadcast_to(heavy, x.shape)
    return tf.reduce_sum(x * heavy, axis=axis) / tf.reduce_sum(heavy, axis=axis)


def _spread(function: Callable[..., tf.Tensor]) -> Equivalent:
    """`np.std` and `np.var`, whose mean may be of fewer by `ddof`."""

    def spread(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> tf.Tensor:
        x = inexact(array(a))
        squares = tf.square(tf.abs(x - tf.reduce_mean(x, axis=axis, keepdims=True)))
        count = (x.shape.num_elements() or 0) // max(tf.reduce_sum(squares, axis=axis).shape.num_elements() or 1, 1)
        total = tf.reduce_sum(squares, axis=axis, keepdims=keepdims)
        return function(total / tf.constant(count - ddof, total.dtype))

    return spread


def _without_nan(function: Callable[..., tf.Tensor], worst: float) -> Equivalent:
    """A reduction that passes over NaN."""

    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
        x = summands(array(a))
        x = tf.where(tf.math.is_nan(x), tf.constant(worst, x.dtype), x) if x.dtype.is_floating else x
        return function(x, axis=axis, keepdims=keepdims)

    return reduced


def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
    x = inexact(array(a))
    there = tf.cast(~tf.math.is_nan(x), x.dtype)
    total = _without_nan(tf.reduce_sum, 0.0)(x, axis, keepdims=keepdims)
    return total / tf.reduce_sum(there, axis=axis, keepdims=keepdims)


REDUCTIONS: dict[str, Equivalent] = {
    "all": _reduction(tf.reduce_all, truth),
    "any": _reduction(tf.reduce_any, truth),
    "argmax": _position(tf.argmax),
    "argmin": _position(tf.argmin),
    "average": _average,
    "cumprod": _cumulative(tf.math.cumprod),
    "cumsum": _cumulative(tf.cumsum),
    "max": _extreme(tf.reduce_max, tf.reduce_any),
    "mean": _reduction(tf.reduce_mean, inexact),
    "min": _extreme(tf.reduce_min, tf.reduce_all),
    "nanmean": _nanmean,
    "nansum": _without_nan(tf.reduce_sum, 0.0),
    "prod": _reduction(tf.reduce_prod, summands),
    "ptp": lambda a, axis=None: tf.reduce_max(array(a), axis=axis) - tf.reduce_min(array(a), axis=axis),
    "std": _spread(tf.sqrt),
    "sum": _reduction(tf.reduce_sum, summands),
    "var": _spread(tf.identity),
}
