"""Scalars as one vector: XLA's CPU compiler fuses no concatenation of many arrays, each becomes a kernel of its own.

A chain of selections, one for each scalar, is fused with what makes them and what reads the vector.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import raw_ops, xla_cpu

FUSED = 8
"""Number of arrays whose concatenation XLA's CPU compiler still fuses: a constant of its source."""


def stack(scalars: Sequence[tf.Tensor]) -> tf.Tensor:
    """`scalars` as a vector."""
    if len(scalars) <= FUSED or not xla_cpu.applies():
        return tf.stack(scalars)
    places, (result, *others) = raw_ops.numbers(len(scalars)), scalars
    for place, scalar in enumerate(others, 1):
        result = raw_ops.select(raw_ops.less(places, raw_ops.constant(place)), result, scalar)
    return result
