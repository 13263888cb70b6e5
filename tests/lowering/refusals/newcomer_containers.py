"""A queue that is taken from in front."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def queue(x, n):
    waiting = pcbatch.bounded([], tf.float32, 2)
    waiting.append(x[0])
    return waiting.pop(0)


BATCH = (np.array([[1.0, 2.0], [4.0, 3.0]], np.float32), np.array([0, 1], np.int32))
ARGUMENTS = {"queue": BATCH}
