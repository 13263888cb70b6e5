"""What is no tensor may live inside a straight piece of code, but not beyond a branch, a loop or a call."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def tape(x):
    tape = tf.GradientTape()
    if x > 0.0:
        x = x / 2.0
    with tape:
        y = x * x
    if y > 1.0:
        y = y - 1.0
    return tape.gradient(y, x)


@pcbatch.autobatch
def function(x):
    return tf.nn.relu


BATCH = (np.array([1.0, -1.0], np.float32),)
ARGUMENTS = dict.fromkeys(["tape", "function"], BATCH)
