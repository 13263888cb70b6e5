"""A list of which the elements are not alike, at a place that a lane says; a list of what a lane leaves in."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([0, 1], np.int32))


@pcbatch.autobatch
def unlike_elements(x, n):
    xs = [x, tf.stack([x, x])]
    if x > 1.0:
        xs[n] = x
    y = xs[n]
    return y, {"a": x}[n]
