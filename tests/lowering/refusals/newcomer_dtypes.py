"""Numbers of a dtype that an operation does not take, and a layer of Keras that is not given its batch axis."""

import keras
import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([2, 2], np.int32), np.ones((2, 2), np.float32))
layer = keras.layers.Dense(2)


@pcbatch.autobatch
def newcomer_dtypes(x, k, row):
    if x > 3.0:
        y = tf.exp(k)
    elif x > 2.0:
        y = tf.nn.sparse_softmax_cross_entropy_with_logits(x, row)
    else:
        y = layer(row)
    return y
