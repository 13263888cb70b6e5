"""What takes known numbers is handed a lane's: the shape of a `tf.constant` or a `reshape`, a list of two dtypes."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def of_an_array(x, k, row):
    return tf.constant(row, tf.int32)


@pcbatch.autobatch
def shape(x, k, row):
    return tf.reshape(row, [k])


@pcbatch.autobatch
def method(x, k, row):
    return row.reshape(k)


@pcbatch.autobatch
def stacked(x, k, row):
    return tf.stack([x, k])


@pcbatch.autobatch
def constant_shape(x, k, row):
    return tf.constant(1.0, shape=[k])


BATCH = (np.array([1.0, 2.0], np.float32), np.array([2, 2], np.int32), np.ones((2, 2), np.float32))
ARGUMENTS = dict.fromkeys(["of_an_array", "shape", "method", "stacked", "constant_shape"], BATCH)
