"""A list at a position of the lane, a queue that is taken from in front, and a None to begin with."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def queue(x, n):
    waiting = pcbatch.bounded([], tf.float32, 2)
    waiting.append(x[0])
    return waiting.pop(0)


@pcbatch.autobatch
def best_of_none(x, n):
    best = None
    for each in x:
        if each > 1.0:
            best = each
    return best + n


BATCH = (np.array([[1.0, 2.0], [4.0, 3.0]], np.float32), np.array([0, 1], np.int32))
ARGUMENTS = dict.fromkeys(["queue", "best_of_none"], BATCH)
