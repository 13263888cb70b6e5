"""Numbers of a dtype that an operation does not take."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([2, 2], np.int32), np.ones((2, 2), np.float32))


@pcbatch.autobatch
def newcomer_dtypes(x, k, row):
    if x > 3.0:
        y = tf.exp(k)
    else:
        y = tf.nn.sparse_softmax_cross_entropy_with_logits(x, row)
    return y
