"""A list of which the elements are not alike, at a place that a lane says; a list of what a lane leaves in."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def stored(x, n):
    xs = [x, tf.stack([x, x])]
    xs[n] = x
    return xs[0]


@pcbatch.autobatch
def read(x, n):
    xs = [x, tf.stack([x, x])]
    return xs[n]


BATCH = (np.array([1.0, 2.0], np.float32), np.array([0, 1], np.int32))
ARGUMENTS = dict.fromkeys(["stored", "read"], BATCH)
