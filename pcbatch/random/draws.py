"""Random draws from common distributions, each a pure function of its key."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.random.keys import Shape, bits, static_shape, words

# -- arguments ---------------------------------------------------------------------------------------------------------
# Dtypes, shapes and bounds, checked.


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


# -- uniform draws -----------------------------------------------------------------------------------------------------
# Numbers are made of them in the same way in every mode.


def unit_draws(key: Any, shape: tuple[int, ...], dtype: tf.DType) -> tf.Tensor:
    """Uniform draws on [0, 1): the top bits of a word as a fraction. Exact, hence the same bits in every mode."""
    word = tf.uint64 if dtype == tf.float64 else tf.uint32
    fraction = FRACTION[dtype]
    top = tf.bitwise.right_shift(bits(key, shape, word), tf.constant(word.size * 8 - fraction, word))
    number, one = tf.cast(top, dtype), tf.constant(2.0**fraction, dtype)
    # Divided by `one`, which is the larger. XLA would make a product of a plain quotient and then compute all rounds of
    # Threefry anew for each operation that reads the draw; a division by what it does not know it does once.
    return number / tf.maximum(number, one)


def inverted(key: Any, shape: Shape, dtype: Any, transform: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """`transform(u)` for uniform `u` on [0, 1), computed in float64 and rounded once to `dtype`.

    Transcendental functions in float32 differ in the last bit by mode, and in graph mode by an element's place in the
    array (vector body or remainder). In float64 they differ too, but after rounding to float32 no trace of it is
    left: a test checks this for each transform on every one of the 2**23 values that `u` can take.
    """
    dtype, sizes = float_dtype(dtype), static_shape(shape)
    unit = unit_draws(key, sizes, tf.float64 if dtype == tf.float64 else tf.float32)
    # By one, but XLA does not know that: it would compute the transform, for a normal number some 300 operations, anew
    # for each operation that reads the draw. The sampler's momenta were computed six times.
    return tf.cast(transform(unit), dtype) / tf.maximum(tf.cast(unit, dtype), tf.constant(1, dtype))


def scaled(random: list[tf.Tensor], span: tf.Tensor) -> tf.Tensor:
    """`floor(r * span / 2**(32 * n))` for the n-word number r, its uint32 words given from low to high; all in uint64.

    Word by word: `x = (x + word * span) >> 32`, the 96-bit product taken in two halves. x stays below span.
    """
    word32, mask = tf.constant(32, tf.uint64), tf.constant(0xFFFFFFFF, tf.uint64)
    right, both = tf.bitwise.right_shift, tf.bitwise.bitwise_and
    span_high, span_low = right(span, word32), both(span, mask)
    x = tf.constant(0, tf.uint64)
    for word in (tf.cast(each, tf.uint64) for each in random):
        x = word * span_high + right(x, word32) + right(word * span_low + both(x, mask), word32)
    return x


# -- distributions -----------------------------------------------------------------------------------------------------


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
