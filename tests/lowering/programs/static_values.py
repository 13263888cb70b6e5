"""Static arguments are gone from the typed program: an instance for each value, decided branches with one arm."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))
VERBOSE = False


@pcbatch.autobatch(static_argnames=("n", "way"))
def power(x, n, way="up"):
    if n == 0:
        return tf.ones_like(x)
    if way == "down":
        return power(x, n - 1, "down") / x
    row = tf.zeros(3)
    row[n] = x
    return tf.reduce_sum(row) * power(x, n - 1)


@pcbatch.autobatch
def static_values(x, n):
    if VERBOSE:
        n = "which nobody sees"
    while n > 0:
        x = power(x, 2)
        n -= 1
    return power(x, 1, "down")
