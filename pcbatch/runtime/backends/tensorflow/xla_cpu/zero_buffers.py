"""Zeros that a program is to write on, each array made by itself.

Of equal arrays XLA makes one, and copies it for each loop that writes on it: that reads and writes as many bytes as are
made. So each array of some size is filled with a zero of its own, which hangs on a number that nobody knows before the
program runs. (A taped run of 64 small TreeLSTMs begins with 16 such arrays, of up to a megabyte each: it takes 0.93 of
the CPU time so, a training step 0.94.)
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, raw_ops, xla_cpu
from pcbatch.runtime.costs.device import CPU


def made_apart(zeros: Sequence[tf.Tensor], count: tf.Tensor) -> list[tf.Tensor]:
    """Arrays that are all `zeros`, the larger ones not known to be equal; `count` is an int32 scalar, at least 0."""
    if not xla_cpu.applies():
        return [*zeros]
    found = []
    for number, array in enumerate(zeros):
        if graphs.bytes_of(array) < CPU.copied:
            found.append(array)
            continue
        never = raw_ops.less(count, raw_ops.constant(-1 - number))
        found.append(tf.fill(tf.shape(array), tf.cast(never, array.dtype)))
    return found
