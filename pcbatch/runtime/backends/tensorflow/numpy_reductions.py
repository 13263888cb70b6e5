"""NumPy's reductions, for values of lanes: sums, extremes and their places, means; see `numpy_equivalents`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_arrays import made
from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact, summands, truth


def _reduction(
    function: Callable[..., tf.Tensor], of: Callable[[tf.Tensor], tf.Tensor], neutral: complex
) -> Equivalent:
    """A reduction, of some elements perhaps: all others are `neutral`."""

    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> tf.Tensor:
        x = of(array(a))
        x = x if where is None else tf.where(array(where), x, tf.cast(neutral, x.dtype))
        return function(x, axis=axis, keepdims=keepdims)

    return reduced


def _extreme(function: Callable[..., tf.Tensor], of_bools: Callable[..., tf.Tensor]) -> Equivalent:
    """`np.max` and `np.min`, which nothing has that is empty."""

    def extreme(
        a: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> tf.Tensor:
        x = array(a)
        if where is not None and initial is None:
            raise ValueError(
                "reduction operation does not have an identity, so to use a where mask one has to specify 'initial'"
            )
        x = x if where is None else tf.where(array(where), x, made(initial, x.dtype))
        found = (of_bools if x.dtype == tf.bool else function)(x, axis=axis, keepdims=keepdims)
        if initial is not None:
            pair = tf.stack([found, tf.broadcast_to(made(initial, x.dtype), found.shape)])
            return (of_bools if x.dtype == tf.bool else function)(pair, axis=0)
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


def _mean(a: Any, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> tf.Tensor:
    x = inexact(array(a))
    if where is None:
        return tf.reduce_mean(x, axis=axis, keepdims=keepdims)
    counts = tf.cast(tf.broadcast_to(array(where), x.shape), x.dtype)
    total = tf.reduce_sum(tf.where(array(where), x, tf.zeros([], x.dtype)), axis=axis, keepdims=keepdims)
    return total / tf.reduce_sum(counts, axis=axis, keepdims=keepdims)


def _nan_extreme(function: Callable[..., tf.Tensor], worst: float) -> Equivalent:
    """An extreme that passes over NaN, unless all are."""

    def extreme(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
        x = array(a)
        if not x.dtype.is_floating:
            return function(x, axis=axis, keepdims=keepdims)
        lost = tf.math.is_nan(x)
        found = function(tf.where(lost, tf.constant(worst, x.dtype), x), axis=axis, keepdims=keepdims)
        return tf.where(tf.reduce_all(lost, axis=axis, keepdims=keepdims), tf.constant(math.nan, x.dtype), found)

    return extreme


def _nan_spread(function: Callable[..., tf.Tensor]) -> Equivalent:
    """`np.nanstd` and `np.nanvar`."""

    def spread(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> tf.Tensor:
        x = inexact(array(a))
        there = ~tf.math.is_nan(x)
        squares = tf.where(there, tf.square(x - _nanmean(x, axis, keepdims=True)), tf.zeros([], x.dtype))
        count = tf.reduce_sum(tf.cast(there, x.dtype), axis=axis, keepdims=keepdims)
        return function(tf.reduce_sum(squares, axis=axis, keepdims=keepdims) / (count - ddof))

    return spread


def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
    x = inexact(array(a))
    there = tf.cast(~tf.math.is_nan(x), x.dtype)
    total = _without_nan(tf.reduce_sum, 0.0)(x, axis, keepdims=keepdims)
    return total / tf.reduce_sum(there, axis=axis, keepdims=keepdims)


REDUCTIONS: dict[str, Equivalent] = {
    "all": _reduction(tf.reduce_all, truth, True),
    "any": _reduction(tf.reduce_any, truth, False),
    "argmax": _position(tf.argmax),
    "argmin": _position(tf.argmin),
    "average": _average,
    "cumprod": _cumulative(tf.math.cumprod),
    "cumsum": _cumulative(tf.cumsum),
    "max": _extreme(tf.reduce_max, tf.reduce_any),
    "mean": _mean,
    "min": _extreme(tf.reduce_min, tf.reduce_all),
    "nanmax": _nan_extreme(tf.reduce_max, -math.inf),
    "nanmean": _nanmean,
    "nanmin": _nan_extreme(tf.reduce_min, math.inf),
    "nanstd": _nan_spread(tf.sqrt),
    "nansum": _without_nan(tf.reduce_sum, 0.0),
    "nanvar": _nan_spread(tf.identity),
    "prod": _reduction(tf.reduce_prod, summands, 1),
    "ptp": lambda a, axis=None: tf.reduce_max(array(a), axis=axis) - tf.reduce_min(array(a), axis=axis),
    "std": _spread(tf.sqrt),
    "sum": _reduction(tf.reduce_sum, summands, 0),
    "var": _spread(tf.identity),
}
