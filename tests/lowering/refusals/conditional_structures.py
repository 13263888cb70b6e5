"""Functions that conditionals and loops of TensorFlow's take return different structures, or shapes."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32),)


@tf.function
def branching(x):
    if x > 0.0:
        y = [x, x]
    else:
        y = x
    return y


@pcbatch.autobatch
def conditional_structures(x):
    if x > 8.0:
        y = tf.cond(x > 0.0, lambda: [x, x], lambda: tf.stack([x, x]))
    elif x > 7.0:
        y = tf.cond(x > 0.0, lambda: {"a": x}, lambda: {"b": x})
    elif x > 6.0:
        y = tf.switch_case(tf.cast(x > 0.0, tf.int32), [lambda: x, lambda: [x, x]])
    elif x > 5.0:
        y = tf.cond(x > 0.0, lambda: x, lambda: None)
    elif x > 4.0:
        y = tf.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, [y, y]], [0, x])
    elif x > 3.0:
        y = tf.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, tf.stack([y, y])], [0, x])
    elif x > 2.0:
        y = tf.map_fn(lambda i: [i, x], tf.range(3))
    else:
        y = branching(x)
    return y
