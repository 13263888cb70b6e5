"""Reductions without an axis reduce the example's vector, never the batch, in a condition and in a result."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32", "float32")


@pcbatch.autobatch
def vector_halving(vector):
    turns = 0
    while tf.reduce_max(tf.abs(vector)) > 1.0:
        vector = vector / 2.0
        turns += 1
    return vector, turns, tf.reduce_sum(vector)


def batch(rng, lanes):
    return (rng.normal(scale=10, size=(lanes, 4)).astype(np.float32),)


def twin(vector):
    turns = max(0, int(np.ceil(np.log2(np.max(np.abs(vector))))))
    vector = vector / 2**turns
    return vector, turns, float(vector.sum())
