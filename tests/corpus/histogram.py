"""Augmented stores at an index read from another lane array; int64 values."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def histogram(values, n):
    counts = tf.zeros([4], tf.int32)
    for i in range(n):
        counts[values[i] % 4] += 1
    return counts


def batch(rng, lanes):
    return rng.integers(-9, 9, (lanes, 6)), rng.integers(0, 7, lanes, dtype=np.int32)


def twin(values, n):
    return np.bincount(values[:n] % 4, minlength=4)
