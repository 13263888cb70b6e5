"""Numbers of a dtype that an operation does not take."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def ints(x, k, row):
    return tf.exp(k)


@pcbatch.autobatch
def floats(x, k, row):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(x, row)


BATCH = (np.array([1.0, 2.0], np.float32), np.array([2, 2], np.int32), np.ones((2, 2), np.float32))
ARGUMENTS = dict.fromkeys(["ints", "floats"], BATCH)
