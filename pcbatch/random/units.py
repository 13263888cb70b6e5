"""Uniform draws, and the numbers made of them in the same way in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.random.checks import FRACTION, float_dtype
from pcbatch.random.keys import Shape, bits, static_shape


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
