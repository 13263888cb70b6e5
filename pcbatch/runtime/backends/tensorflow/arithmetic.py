"""Python's arithmetic on tensors that hold Python's numbers: int32, which wraps, and float64, which is Python's float.

Every function takes two tensors of one dtype and never raises; what Python would raise for is checked by `ops`.
"""

from __future__ import annotations

import tensorflow as tf


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
