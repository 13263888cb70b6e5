"""Each turn of the loop gives `x` the other dtype, so no dtype holds for all of them."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1, 2], np.int32),)


def flipped(x):
    return tf.cast(x, tf.int32 if x.dtype == tf.float32 else tf.float32)


@pcbatch.autobatch
def unsettled(n):
    x = 1
    while n > 0:
        x = flipped(x)
        n = n - 1
    return x
