"""What a batched form gives is compared with what the function gives for one example."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.primitive(batched=lambda xs: tf.reduce_sum(xs))
def total(xs):
    return tf.reduce_sum(xs)


@pcbatch.autobatch
def batched_form_shapes(xs):
    doubled = xs * 2.0
    return total(doubled)


ARGUMENTS = {"batched_form_shapes": (np.ones((2, 3), np.float32),)}
