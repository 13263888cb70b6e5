"""Operands of two dtypes in a helper, in a function inside the function, and at an index; an `@` of a vector."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.ones((2, 3)), np.array([1, 2], np.int32))


def share(x, n):
    return x[0] / (n + 1)


@pcbatch.autobatch
def newcomer_operands(x, n):
    def wave(t):
        return x[0] * tf.cos(t)

    total = wave(1.0)
    if n > 1:
        total = share(x, n)
    left = n
    if n > 2:
        left = left - tf.cast(x, tf.int64)[n]
    if n > 3:
        moved = tf.reshape(x, [1, 3]) @ np.ones(3)
    else:
        moved = x
    return total, left, moved
