"""Decimal digits of floats of 64 bits: rounding to some, and logarithms that are exact at powers of ten and of two.

Everything here is for tensors of float64. XLA computes a product and the sum that it goes into with one rounding, and
makes a product of a quotient by a constant; where a rounding matters, something that changes no value stands between.
"""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

_EXACT = 22
"""The largest power of ten that is a float64."""
_WHOLE = 2.0**52
"""The bound from which on floats have no fraction."""


def rounded(x: tf.Tensor, digits: int) -> tf.Tensor:
    """`round(x, digits)`: of the multiples of `10 ** -digits` the nearest to `x`, of two the even one.

    As Python's for up to 22 digits on either side of the point; for more, where `x` is a tie to within rounding, it may
    be the other one.
    """
    if digits > 323:
        return x
    if digits < -308:
        return x * 0
    found = _to_fraction(x, digits) if digits >= 0 else _to_multiple(x, 10.0**-digits)
    return tf.where(tf.math.is_finite(x), found, x)


def _to_fraction(x: tf.Tensor, digits: int) -> tf.Tensor:
    if digits > _EXACT:  # in two steps, lest the power is too large
        part = 10.0 ** (digits - _EXACT) if digits - _EXACT <= 300 else math.inf
        large = tf.abs(x) >= _WHOLE / 10.0**_EXACT
        found = _to_fraction(tf.where(large, tf.zeros_like(x), x) * part, _EXACT) / part
        return tf.where(large | tf.math.is_nan(found), x, found)
    scale = 10.0**digits
    product = tf.minimum(x * scale, 1e308)
    whole = tf.round(product)
    rest, lost = product - whole, _error(x, scale, product)
    up = (rest > 0.5) | (tf.equal(rest, 0.5) & (lost > 0))
    down = (rest < -0.5) | (tf.equal(rest, -0.5) & (lost < 0))
    whole = tf.where(up, whole + 1, tf.where(down, whole - 1, whole))
    unknown = tf.maximum(tf.minimum(tf.abs(x), 1.0), scale)  # is `scale`
    found = copysign(whole / unknown, x)
    return tf.where(tf.abs(product) < _WHOLE, found, x)  # others have no more digits


def _to_multiple(x: tf.Tensor, unit: float) -> tf.Tensor:
    size = tf.abs(x)
    rest = tf.math.floormod(size, tf.constant(unit, x.dtype))
    count = tf.round((size - rest) / unit)
    odd = tf.equal(tf.math.floormod(count, tf.constant(2.0, x.dtype)), 1)
    count = tf.where((rest > unit / 2) | (tf.equal(rest, unit / 2) & odd), count + 1, count)
    return tf.where(count < _WHOLE, copysign(count * unit, x), x)


def _error(x: tf.Tensor, scale: float, product: tf.Tensor) -> tf.Tensor:
    """`x * scale - product`, exactly (Dekker, 1971): the halves of the factors have exact products."""
    high = tf.bitcast(tf.bitwise.bitwise_and(tf.bitcast(x, tf.int64), tf.constant(-(1 << 27), tf.int64)), x.dtype)
    low = x - high
    scale_high = float(np.array(np.float64(scale).view(np.int64) & -(1 << 27)).view(np.float64))
    scale_low = scale - scale_high
    return ((high * scale_high - product) + high * scale_low + low * scale_high) + low * scale_low


def copysign(x: tf.Tensor, sign: tf.Tensor) -> tf.Tensor:
    """The size of `x` with the sign of `sign`, which zeros and NaN have, too."""
    return tf.where(tf.bitcast(sign, tf.int64) < 0, -tf.abs(x), tf.abs(x))


def log10(x: tf.Tensor) -> tf.Tensor:
    """Return the logarithm to the base ten: the exponent of the nearest power plus the logarithm of the rest."""
    powers = tf.constant([float(f"1e{n}") for n in range(-307, 309)], x.dtype)
    exponent = _nearest(tf.math.log(x) / math.log(10), -307, 308)
    left = x / tf.gather(powers, tf.cast(exponent, tf.int32) + 307)
    return _sum(exponent, tf.math.log(left) / math.log(10), x)


def log2(x: tf.Tensor) -> tf.Tensor:
    """The logarithm to the base two; see `log10`."""
    exponent = _nearest(tf.math.log(x) / math.log(2), -1021, 1021)
    biased = tf.cast(1023 - exponent, tf.int64)
    left = x * tf.bitcast(tf.bitwise.left_shift(biased, tf.constant(52, tf.int64)), x.dtype)
    return _sum(exponent, tf.math.log(left) / math.log(2), x)


def _nearest(logarithm: tf.Tensor, lowest: int, highest: int) -> tf.Tensor:
    usable = tf.where(tf.math.is_finite(logarithm), logarithm, tf.zeros_like(logarithm))
    return tf.clip_by_value(tf.round(usable), lowest, highest)


def _sum(exponent: tf.Tensor, rest: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Return `exponent + rest`; for 0, infinity and numbers without a logarithm TensorFlow's."""
    return tf.where((x > 0) & tf.math.is_finite(x), exponent + rest, tf.math.log(x))
