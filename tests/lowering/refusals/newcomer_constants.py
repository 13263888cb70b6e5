"""What takes known numbers is handed a lane's: the shape of a `tf.constant` or a `reshape`, a list of two dtypes."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([2, 2], np.int32), np.ones((2, 2), np.float32))


@pcbatch.autobatch
def newcomer_constants(x, k, row):
    if x > 5.0:
        y = tf.constant(row, tf.int32)
    elif x > 4.0:
        y = tf.reshape(row, [k])
    elif x > 3.0:
        y = row.reshape(k)
    elif x > 2.0:
        y = tf.stack([x, k])
    elif x > 1.0:
        y = np.array([x, k])
    else:
        y = tf.constant(1.0, shape=[k])
    return y
