"""Operands of two dtypes in a helper, in a function inside the function, and at an index; an `@` of a vector."""

import numpy as np
import tensorflow as tf

import pcbatch


def share(x, n):
    return tf.divide(x[0], n + 1)


@pcbatch.autobatch
def of_tensorflow(x, n):
    return tf.add(x[0], n)


@pcbatch.autobatch
def in_a_helper(x, n):
    return share(x, n)


@pcbatch.autobatch
def shapes(x, n):
    if n > 3:
        moved = tf.reshape(x, [1, 3]) @ np.ones(3)
    else:
        moved = x
    return moved


BATCH = (np.ones((2, 3)), np.array([1, 2], np.int32))
ARGUMENTS = dict.fromkeys(["of_tensorflow", "in_a_helper", "shapes"], BATCH)
