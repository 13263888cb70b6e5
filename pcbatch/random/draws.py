"""Random draws from common distributions, each a pure function of its key."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.random.checks import as_tensor, bound, broadcasting, float_dtype, integer_bound, is_number
from pcbatch.random.keys import Shape, static_shape, words
from pcbatch.random.units import inverted, scaled, unit_draws


def uniform(key: Any, shape: Shape = (), dtype: Any = tf.float32, minval: Any = 0.0, maxval: Any = 1.0) -> tf.Tensor:
    """Uniform draws from `[minval, maxval)`, of `shape` and a float dtype.

    The bounds are finite numbers or tensors that broadcast to `shape`. On `[0, 1)` a draw is a multiple of 2**-23
    (float64: 2**-52, float16: 2**-10, bfloat16: 2**-7). Where no number is between the bounds, the result is `minval`;
    numbers in the wrong order are refused. Equal to `jax.random.uniform` in float32 and float64, except where
    that rounds to `maxval` itself, or to infinity because the range is too wide.

    >>> from pcbatch.random import key
    >>> uniform(key(42), (3,)).numpy()
    array([0.48870957, 0.6797972 , 0.6162715 ], dtype=float32)
    """
    dtype, shape = float_dtype(dtype), static_shape(shape)
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)) and minval > maxval:
        raise ValueError(f"minval {minval} is above maxval {maxval}")
    if not all(math.isfinite(each) for each in (minval, maxval) if isinstance(each, (int, float))):
        raise ValueError(f"minval and maxval must be finite, not {minval} and {maxval}")
    unit = unit_draws(key, shape, dtype)
    if is_number(minval, 0) and is_number(maxval, 1):
        return unit
    low, high = bound(minval, "minval", shape, dtype), bound(maxval, "maxval", shape, dtype)
    return _between(unit, low, high)


def normal(key: Any, shape: Shape = (), dtype: Any = tf.float32) -> tf.Tensor:
    """Standard normal draws of `shape` and a float dtype, by inversion: `sqrt(2) * erfinv(u)`, `u` uniform on (-1, 1).

    The largest magnitude is 5.4 (float64: 8.2). Equal to `jax.random.normal` to rounding in float32 and float64.

    >>> from pcbatch.random import key
    >>> normal(key(42), (2,)).numpy()
    array([-0.02830462,  0.4671318 ], dtype=float32)
    """
    return inverted(key, shape, dtype, standard_normal)


def exponential(key: Any, shape: Shape = (), dtype: Any = tf.float32) -> tf.Tensor:
    """Draws from the exponential distribution of rate 1, of `shape` and a float dtype, by inversion: `-log(1 - u)`.

    The smallest draw is 0, the largest 15.9 (float64: 36.0). Equal to `jax.random.exponential` to rounding in float32
    and float64.

    >>> from pcbatch.random import key
    >>> exponential(key(42), (2,)).numpy()
    array([0.6708175, 1.1388006], dtype=float32)
    """
    return inverted(key, shape, dtype, _exponential)


def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None) -> tf.Tensor:
    """Bool draws that are True with probability `p`, of `shape` (by default the shape of `p`).

    `p` is a number or a float tensor that broadcasts to `shape`; its probability is met to 2**-23 (float64: 2**-52).
    Equal to `jax.random.bernoulli`.

    >>> from pcbatch.random import key
    >>> bool(bernoulli(key(42), 0.9))
    True
    """
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise ValueError(f"p is a probability, between 0 and 1, not {p}")
    given = float_dtype(getattr(p, "dtype", tf.float32), "probabilities")
    dtype = tf.float64 if given == tf.float64 else tf.float32
    p = tf.cast(as_tensor(p, "p", given), dtype)
    wanted = static_shape(p.shape if shape is None else shape)
    return unit_draws(key, wanted, dtype) < broadcasting(p, "p", wanted)


def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: Any = tf.int32) -> tf.Tensor:
    """Uniform integers `minval <= n < maxval`, of `shape` and dtype int32 or int64.

    The bounds are integers or integer tensors that broadcast to `shape` and lie in the range of `dtype` (of int32
    `maxval` may be one beyond). By multiplication instead of a remainder (Lemire, "Fast Random Integer Generation in an
    Interval", 2019) on 64 random bits (int64: 128), so that the probability of a number is off by less than 2**-32
    (2**-64) of itself. An empty range is refused; where it is only known when the program runs (tensors), the result is
    `minval`.

    >>> from pcbatch.random import key
    >>> randint(key(42), (5,), 1, 7).numpy()
    array([1, 5, 1, 2, 5], dtype=int32)
    """
    dtype, shape = tf.as_dtype(dtype), static_shape(shape)
    if dtype not in (tf.int32, tf.int64):
        raise TypeError(f"random integers are int32 or int64, not {dtype.name}; use bits for unsigned integers")
    low, high = integer_bound(minval, "minval", shape, dtype), integer_bound(maxval, "maxval", shape, dtype)
    if isinstance(minval, int) and isinstance(maxval, int) and minval >= maxval:
        raise ValueError(f"there is no integer n with {minval} <= n < {maxval}")
    start = tf.cast(low, tf.uint64)
    span = tf.where(high > low, tf.cast(high, tf.uint64) - start, tf.constant(0, tf.uint64))
    if dtype == tf.int32:
        random = [*words(key, shape)]
    else:
        random = [word for pair in words(key, (2, *shape)) for word in tf.unstack(pair)]
    return tf.cast(start + scaled(random, span), dtype)


# -- transforms --------------------------------------------------------------------------------------------------------


def _between(unit: tf.Tensor, low: tf.Tensor, high: tf.Tensor) -> tf.Tensor:
    """`low + unit * (high - low)`, which rounding does not take to `high`; `low` where no number is between."""
    # In halves where the difference has no finite number: exact, as they are powers of two.
    scale = tf.where(tf.math.is_inf(high - low), tf.constant(0.5, unit.dtype), tf.constant(1, unit.dtype))
    width = high * scale - low * scale
    # The minimum changes no value. It stands between product and sum because XLA would fuse them into one rounding, and
    # results would then differ in the last bit between XLA and graph mode.
    found = (tf.minimum(unit * width, width) + low * scale) / scale
    found = tf.where(high >= low, found, low + 0 * high)
    below = tf.where(tf.equal(high, 0), low, _next_below(high))
    return tf.where((found < high) | ~(high > low), found, found + tf.stop_gradient(below - found))


_ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
"""The largest relative error of one rounding, by dtype."""


def _next_below(x: tf.Tensor) -> tf.Tensor:
    """The largest number below a normal `x`, by two roundings.

    Rump, Zimmermann, Boldo and Melquiond, "Computing predecessor and successor in rounding to nearest", BIT 2009.
    TensorFlow's own function knows two dtypes only, and casts of bits cannot be vectorised.
    """
    rounding = _ROUNDING[x.dtype.name]
    return x - tf.abs(x) * tf.constant(rounding * (1 + 2 * rounding), x.dtype)


def standard_normal(unit: tf.Tensor) -> tf.Tensor:
    """float64 normal numbers of uniform ones on [0, 1)."""
    lowest = float(np.nextafter(unit.dtype.as_numpy_dtype(-1), 0))
    symmetric = unit * 2.0 + lowest  # on (-1, 1), rounded as jax.random does; the product is exact
    return math.sqrt(2.0) * tf.math.erfinv(tf.cast(symmetric, tf.float64))


def _exponential(unit: tf.Tensor) -> tf.Tensor:
    """-log(v) = asinh((1/v - v) / 2) for v = 1 - u.

    In graph mode TensorFlow's float64 logarithm rounds an element differently by its place in the array, its asinh does
    not.
    """
    u = tf.cast(unit, tf.float64)
    return tf.math.asinh(u * (2.0 - u) / (2.0 * (1.0 - u)))
