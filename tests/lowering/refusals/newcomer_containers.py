"""A list at a position of the lane, a queue that is taken from in front, and a None to begin with."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([[1.0, 2.0], [4.0, 3.0]], np.float32), np.array([0, 1], np.int32))


@pcbatch.autobatch
def newcomer_containers(x, n):
    queue = pcbatch.bounded([], tf.float32, 2)
    queue.append(x[0])
    first = 0.0
    best = None
    for each in x:
        if each > 1.0:
            best = each
    if n > 0:
        first = queue.pop(0)
    if n > 1:
        pair = [x[0], x[1]]
        first = pair[n]
    return first, best
