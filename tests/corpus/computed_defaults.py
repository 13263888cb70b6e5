"""Defaults that are no literals: evaluated once, at the definition; keyword-only and positional-only ones."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)
BASE = 3.0
WEIGHTS = np.array([1.0, 2.0], np.float32)


@pcbatch.autobatch
def weighed(x, scale=BASE - 1.0, /, *, weights=WEIGHTS * 2, pair=(BASE, 1.0)):
    return tf.reduce_sum(weights) * x * scale + pair[0] * pair[1]


BASE = 100.0


@pcbatch.autobatch
def computed_defaults(x, n):
    total = weighed(x, 1.0)
    while n > 0:
        total += weighed(x) + weighed(x, weights=WEIGHTS, pair=(0.0, x))
        n -= 1
    return total


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 4, lanes, dtype=np.int32)


def twin(x, n):
    return 6 * x + 3 + n * (18 * x + 3)
