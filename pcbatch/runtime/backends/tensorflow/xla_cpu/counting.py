"""Counts of the lanes that wait at each label, such that XLA's CPU compiler makes the fewest kernels of them.

A plain sum over lanes becomes three kernels, each some 15 ms to compile, for XLA sums in two stages; a product with a
vector of ones becomes one, which is no slower. A sum by segments is five, but goes over many lanes once for all labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import raw_ops, xla_cpu
from pcbatch.runtime.costs.device import CPU

COUNTS = 8
"""Number of partial counts of each label, for the lanes in turn: to add to one, the CPU waits for the last addition."""


def tally(numbers: tf.Tensor, labels: Sequence[int]) -> tf.Tensor:
    """See `arrays.Arrays.tally`."""
    lanes, count = numbers.shape[0], len(labels)
    if labels == range(count) and (lanes is None or lanes * count > CPU.tallied or not xla_cpu.applies()):
        found = tf.where((numbers >= 0) & (numbers < count), numbers, count)
        if lanes is None or not xla_cpu.applies():
            return tf.math.unsorted_segment_sum(tf.ones_like(numbers), found, count + 1)[:count]
        rows = raw_ops.once(("row of a count", lanes, count), lambda: tf.range(lanes) % COUNTS * (count + 1))
        counts = tf.math.unsorted_segment_sum(tf.ones_like(numbers), found + rows, COUNTS * (count + 1))
        return tf.reduce_sum(tf.reshape(counts, [COUNTS, count + 1]), axis=0)[:count]
    hits = raw_ops.cast(raw_ops.equal(raw_ops.constant(tuple((label,) for label in labels)), numbers), tf.int32)
    if not xla_cpu.applies():
        return tf.reduce_sum(hits, axis=1)
    if lanes is None:
        return tf.linalg.matvec(hits, tf.ones_like(numbers))
    ones = raw_ops.once(("column of ones", lanes), lambda: tf.ones([lanes, 1], tf.int32))
    return raw_ops.reshape(raw_ops.product(hits, ones), (count,))


def ranks(numbers: tf.Tensor) -> tf.Tensor:
    """See `arrays.Arrays.ranks`."""
    count = numbers.shape[0]
    before = raw_ops.once(("before", count), lambda: tf.constant(np.tri(count, k=-1, dtype=np.int32)))
    same = tf.cast(numbers[:, tf.newaxis] == numbers, tf.int32) * before
    if not xla_cpu.applies():
        return tf.reduce_sum(same, axis=1)
    ones = raw_ops.once(("column of ones", count), lambda: tf.ones([count, 1], tf.int32))
    return raw_ops.reshape(raw_ops.product(same, ones), (count,))
