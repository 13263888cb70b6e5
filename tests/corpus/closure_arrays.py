"""A NumPy array, a constant tensor and a variable of the module: indexed by the lane, and in a matrix product."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)
TABLE = np.array([0.5, -1.0, 2.0, 0.25], np.float32)
OFFSETS = tf.constant([1.0, 2.0, 3.0, 4.0])
WEIGHTS = tf.Variable([[0.5, -0.25], [0.75, 0.125]])


@pcbatch.autobatch
def closure_arrays(vector, n):
    for k in range(n):
        vector = tf.linalg.matvec(WEIGHTS, vector) + TABLE[k] * OFFSETS[n]
    return vector


def batch(rng, lanes):
    return rng.normal(size=(lanes, 2)).astype(np.float32), rng.integers(0, 4, lanes, dtype=np.int32)


def twin(vector, n):
    for entry in (0.5, -1.0, 2.0, 0.25)[:n]:
        x, y = vector
        vector = np.array([x / 2 - y / 4, 3 * x / 4 + y / 8]) + entry * (n + 1)
    return vector
