"""All faults of a function are told at once, in the order of the source."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def condition(xs, n):
    if xs > 0.0:
        n = n + 1
    return n


@pcbatch.autobatch
def shapes(xs, n):
    best = 0.0
    if n > 1:
        best = xs
    return best


@pcbatch.autobatch
def product(xs, n):
    return tf.matmul(xs, xs)


BATCH = (np.ones((2, 3), np.float32), np.array([1, 2], np.int32))
ARGUMENTS = dict.fromkeys(["condition", "shapes", "product"], BATCH)
