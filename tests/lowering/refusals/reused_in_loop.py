"""A name that two paths give two meanings is refused by the user's name, whatever it was used for before."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def reused_in_loop(x, n):
    total = n
    count = total + 1
    total = 0.0
    while count > 0:
        total = total + tf.stack([x, x])
        count -= 1
    return total


ARGUMENTS = {"reused_in_loop": (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))}
