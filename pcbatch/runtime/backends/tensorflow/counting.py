"""How many lanes wait where: counts of labels, as XLA's CPU compiler makes the fewest kernels of them.

A plain sum over lanes becomes three kernels, each some 15 ms to compile, for XLA sums in two stages; a product with a
vector of ones becomes one, which is no slower. A sum by segments is five, but goes over many lanes once for all labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs

MANY = 2**12
"""Lanes times labels from which on a sum by segments is faster (4096 lanes, 40 labels: 27 us instead of 440).

Somewhat below that it saves compiling: LLVM unrolls the product (512 lanes, 21 labels: 0.19 s, for 0.2 us a time)."""


def tally(numbers: tf.Tensor, labels: Sequence[int]) -> tf.Tensor:
    """See `arrays.Arrays.tally`."""
    lanes, count = numbers.shape[0], len(labels)
    if labels == range(count) and (lanes is None or lanes * count > MANY or not _is_compiled()):
        found = tf.where((numbers >= 0) & (numbers < count), numbers, count)
        return tf.math.unsorted_segment_sum(tf.ones_like(numbers), found, count + 1)[:count]
    hits = tf.cast(tf.constant(list(labels), tf.int32)[:, None] == numbers, tf.int32)
    return tf.linalg.matvec(hits, tf.ones_like(numbers)) if _is_compiled() else tf.reduce_sum(hits, axis=1)


def _is_compiled() -> bool:
    """Whether XLA compiles this for a CPU."""
    return graphs.in_outer_xla() and not graphs.on_gpu()
