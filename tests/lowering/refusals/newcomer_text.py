"""Text as the state of a machine, which lanes cannot keep; a matrix times a vector, which `@` is not."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.ones((2, 4, 3), np.float32), np.ones((2, 3), np.float32))


@pcbatch.autobatch
def newcomer_text(weights, x):
    state = "start"
    while tf.reduce_max(x) < 10.0:
        y = weights @ x
        x = x + y[0]
        state = "going"
    return x, 1 if state == "start" else 0
