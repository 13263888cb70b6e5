"""A text or a function that changes from path to path is nothing that a lane can keep."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32),)


@pcbatch.autobatch
def texts_differ(x):
    state = "start"
    if x > 1.0:
        state = "going"
        wave = tf.sin
    else:
        wave = tf.cos
    return wave(x), 1 if state == "start" else 0
