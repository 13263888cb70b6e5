"""Powers of integers: XLA looks at the last six bits of an exponent only, so that `0 ** 64` is 1 and `3 ** 100` wrong.

Integers wrap, and TensorFlow's kernels wrap as NumPy does: what is left of a large power is of use, in hashes for one.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs
from pcbatch.runtime.backends.tensorflow.arithmetic import inverse_power
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule, aligned

DIGIT = 6
"""Number of bits of an exponent that XLA uses."""


def power(base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """`tf.pow` of integers under XLA. Negative exponents, for which TensorFlow's kernels raise, give what XLA gives."""
    known = tf.get_static_value(exponent)
    if known is not None and ((known >= 0) & (known < 1 << DIGIT)).all():
        return tf.pow(base, exponent)
    bits = 8 * exponent.dtype.size - 1 if known is None else int(known.max()).bit_length()
    shift, last = (tf.constant(number, exponent.dtype) for number in (DIGIT, (1 << DIGIT) - 1))
    rest = tf.maximum(exponent, tf.zeros_like(exponent))
    found = tf.pow(base, rest & last)
    raised = base
    for _ in range(DIGIT, bits, DIGIT):
        rest = tf.bitwise.right_shift(rest, shift)
        for _ in range(DIGIT):
            raised *= raised
        found *= tf.pow(raised, rest & last)
    return tf.where(exponent < 0, inverse_power(base, exponent), found)


def is_whole(operation: Any) -> bool:
    """Return whether an operation is a power of integers that XLA compiles."""
    return operation.type == "Pow" and operation.outputs[0].dtype.is_integer and graphs.in_outer_xla()


def _applies(inputs: Any) -> bool:
    return tf.as_dtype(inputs.get_attr("T")).is_integer and graphs.in_outer_xla()


def _of_all_lanes(inputs: Any) -> tf.Tensor:
    return power(*aligned([inputs.input(0), inputs.input(1)]))


CORRECTIONS: dict[str, tuple[Applies, Rule]] = {"Pow": (_applies, _of_all_lanes)}
