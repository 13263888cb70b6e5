"""All faults of a function are told at once, in the order of the source."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.ones((2, 3), np.float32), np.array([1, 2], np.int32))


@pcbatch.autobatch
def several(xs, n):
    if xs > 0.0:
        n = n + 1
    best = 0.0
    if n > 1:
        best = xs
    if n > 2:
        return best
    return tf.matmul(xs, xs)
