"""A tuple of a vector and a number as argument of the entry and of a call in a loop."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32")


@pcbatch.autobatch
def halved(pair):
    vector, count = pair
    return vector * 0.5, count - 1


@pcbatch.autobatch
def structured_argument(pair, total):
    vector, count = pair
    while count > 0:
        vector, count = halved((vector, count))
        total += tf.reduce_sum(vector)
    return total, pair[1]


def batch(rng, lanes):
    vectors = rng.normal(size=(lanes, 3)).astype(np.float32)
    return (vectors, rng.integers(0, 5, lanes, dtype=np.int32)), rng.normal(size=lanes).astype(np.float32)


def twin(pair, total):
    vector, count = pair
    return total + float(vector.sum()) * (1 - 0.5**count), count
