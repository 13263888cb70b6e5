"""What lanes compute is not known at compile time, so no static parameter can take it."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch(static_argnames="size")
def filled(x, size):
    return tf.reduce_sum(tf.fill([size], x))


@pcbatch.autobatch
def static_from_lanes(x, n):
    total = filled(x, 2) + filled(x, n)
    for i in range(3):
        total += filled(x, i)
    return total


ARGUMENTS = {"static_from_lanes": (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))}
