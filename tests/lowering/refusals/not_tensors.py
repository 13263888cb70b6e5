"""What is no tensor may live inside a straight piece of code, but not beyond a branch, a loop or a call."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, -1.0], np.float32),)


@pcbatch.autobatch
def not_tensors(x):
    kind = "relu"
    activation = getattr(tf.nn, kind)
    tape = tf.GradientTape()
    if x > 0.0:
        x = x / 2.0
    y = activation(x)
    slope = tape.gradient(y, x)
    return y if kind == "relu" else slope
