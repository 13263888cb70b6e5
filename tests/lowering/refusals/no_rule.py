"""An operation that TensorFlow cannot batch is named, at the line that calls it, together with the way out."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def no_rule(xs):
    doubled = xs * 2.0
    different = tf.size(tf.unique(doubled).y)
    return different + 1


ARGUMENTS = {"no_rule.options(jit=True)": (np.ones((2, 3), np.float32),)}
