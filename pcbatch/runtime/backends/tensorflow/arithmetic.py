"""Python's arithmetic on tensors that hold Python's numbers: int32, which wraps, and float64, which is Python's float.

Every function takes two tensors of one dtype and never raises; what Python would raise for is checked by `ops`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.types import meeting

# -- promotion ---------------------------------------------------------------------------------------------------------
# Numbers that meet: an int has the dtype of a float beside it, two ints or two floats the wider, a bool is an int.


def is_bool(value: Any) -> bool:
    """Return whether `value` is a bool, Python's or NumPy's, or an array of bools."""
    return isinstance(value, (bool, np.bool_)) or getattr(value, "dtype", None) in (tf.bool, np.bool_)


def is_flag(value: Any) -> bool:
    """Return whether `value` is one bool."""
    return is_bool(value) and len(getattr(value, "shape", ())) == 0


def wrapped(number: int, dtype: tf.DType) -> int:
    """`number` as `dtype` holds it: of a negative one TensorFlow makes another uint64 outside of graphs, or raises."""
    return number % 2**64 if number < 0 and dtype == tf.uint64 else number


def loses(own: tf.DType, wanted: tf.DType) -> bool:
    """Return whether a conversion of dtypes may change a number: 0.5 to an int, 2 to a bool."""
    if own == wanted or own == tf.bool:
        return False
    is_exact = wanted.is_integer and not own.is_integer
    return bool(wanted == tf.bool or is_exact or (own.is_complex and not wanted.is_complex))


def widened(a: tf.Tensor, b: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Two tensors as ones of the dtype in which they meet; TypeError where there is none."""
    if a.dtype == b.dtype:
        return a, b
    wider = meeting(a.dtype.name, b.dtype.name)
    if wider is None:
        raise TypeError(f"dtypes {a.dtype.name} and {b.dtype.name} differ; write tf.cast(.., tf.{a.dtype.name})")
    return tf.cast(a, wider), tf.cast(b, wider)


# -- arithmetic --------------------------------------------------------------------------------------------------------


def true_divide(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x / y`: a float64, also of two ints."""
    return tf.cast(x, tf.float64) / tf.cast(y, tf.float64)


def floor_divide(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x // y`. For floats CPython's own algorithm: the floor of a rounded quotient would make `1.0 // 0.1` 10."""
    if x.dtype.is_integer:
        return floor_divide_ints(x, y)
    rest = tf.sign(x) * tf.math.floormod(tf.abs(x), tf.abs(y))  # C's fmod
    quotient = (x - rest) / y
    quotient = tf.where((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1, quotient)
    floored = tf.floor(quotient)
    return tf.where(quotient - floored > 0.5, floored + 1, floored)


def modulo(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x % y`, with the sign of `y`, which a 0 has, too."""
    if x.dtype.is_integer:
        return modulo_ints(x, y)
    rest = tf.math.floormod(x, y)
    zero = tf.where(y < 0, tf.constant(-0.0, x.dtype), tf.constant(0.0, x.dtype))
    return tf.where(tf.equal(rest, 0), zero, rest)


def floor_divide_ints(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x // y` of ints: a shift for a power of two, of which XLA makes 8 instructions else, for signs that it sees."""
    exponent = _binary_logarithm(y)
    return tf.math.floordiv(x, y) if exponent is None else tf.bitwise.right_shift(x, tf.constant(exponent, x.dtype))


def modulo_ints(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x % y` of ints: the last bits for a power of two."""
    exponent = _binary_logarithm(y)
    return tf.math.floormod(x, y) if exponent is None else tf.bitwise.bitwise_and(x, y - 1)


def _binary_logarithm(y: tf.Tensor) -> int | None:
    """The exponent where `y` is known while tracing, and one power of two; else None."""
    known = tf.get_static_value(y) if y.shape.rank == 0 else None
    if known is None or known <= 0 or int(known).bit_count() > 1:
        return None
    return int(known).bit_length() - 1


def power(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x ** y` of two ints or two floats."""
    return int_power(x, y) if x.dtype.is_integer else tf.pow(x, y)


def int_power(base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """`base ** exponent` of integer tensors; negative exponents give the result truncated to an int and never raise."""
    if exponent.dtype.is_unsigned:
        return _unsigned_power(base, exponent)
    zero = tf.zeros_like(exponent)
    return tf.where(exponent < 0, inverse_power(base, exponent), tf.pow(base, tf.maximum(exponent, zero)))


def inverse_power(base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """`base ** exponent` of a negative exponent, as an int."""
    sign = tf.where(tf.math.floormod(exponent, 2) == 0, tf.ones_like(base), base)
    return tf.where(tf.abs(base) == 1, sign, tf.zeros_like(base))


def _unsigned_power(base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """The same of dtypes of which TensorFlow has no powers: the last bits of those of int64."""
    wide, dtype = tf.cast(base, tf.int64), base.dtype
    if dtype != tf.uint64:
        return tf.cast(tf.pow(wide, tf.cast(exponent, tf.int64)), dtype)
    one = tf.ones_like(exponent)
    root = tf.pow(wide, tf.cast(tf.bitwise.right_shift(exponent, one), tf.int64))
    return tf.cast(root * root * tf.where(tf.equal(exponent & one, 0), tf.ones_like(wide), wide), dtype)


def left_shift(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x << y`: bits that leave the dtype are lost, so a shift by its width or more gives 0."""
    width = 8 * x.dtype.size
    return tf.where(y > width - 1, tf.zeros_like(x), tf.bitwise.left_shift(x, y))


def right_shift(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x >> y`: the sign is shifted in, so a shift by the width or more gives -1 or 0."""
    width = 8 * x.dtype.size
    shifted = tf.bitwise.right_shift(x, y)
    return tf.where(y > width - 1, tf.zeros_like(x), shifted) if x.dtype.is_unsigned else shifted


# -- decimals ----------------------------------------------------------------------------------------------------------
# Decimal digits of floats of 64 bits: rounding to some, and logarithms that are exact at powers of ten and of two.
#
# Everything here is for tensors of float64. XLA computes a product and the sum that it goes into with one rounding, and
# makes a product of a quotient by a constant; where a rounding matters, something that changes no value stands between.

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
