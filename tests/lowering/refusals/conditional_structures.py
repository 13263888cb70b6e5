"""Functions that conditionals and loops of TensorFlow's take return different structures, or shapes."""

import numpy as np
import tensorflow as tf

import pcbatch


@tf.function
def branching(x):
    if x > 0.0:
        y = [x, x]
    else:
        y = x
    return y


@pcbatch.autobatch
def list_or_array(x):
    return tf.cond(x > 0.0, lambda: [x, x], lambda: tf.stack([x, x]))


@pcbatch.autobatch
def other_keys(x):
    return tf.cond(x > 0.0, lambda: {"a": x}, lambda: {"b": x})


@pcbatch.autobatch
def switched(x):
    return tf.switch_case(tf.cast(x > 0.0, tf.int32), [lambda: x, lambda: [x, x]])


@pcbatch.autobatch
def none(x):
    return tf.cond(x > 0.0, lambda: x, lambda: None)


@pcbatch.autobatch
def looped(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, [y, y]], [0, x])


@pcbatch.autobatch
def other_shape_after_a_turn(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, tf.stack([y, y])], [0, x])


@pcbatch.autobatch
def mapped(x):
    return tf.map_fn(lambda i: [i, x], tf.range(3))


@pcbatch.autobatch
def by_autograph(x):
    return branching(x)


BATCH = (np.array([1.0, 2.0], np.float32),)
ARGUMENTS = dict.fromkeys(
    ["list_or_array", "other_keys", "switched", "none", "looped", "other_shape_after_a_turn", "mapped", "by_autograph"],
    BATCH,
)
