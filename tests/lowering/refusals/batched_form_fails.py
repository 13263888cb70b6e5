"""A batched form that fails says so at the call, here because it was written for one example."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.primitive(batched=lambda xs: tf.tensordot(xs, [1.0, 2.0, 3.0], 1) + tf.ones([3]))
def weighted(xs):
    return tf.tensordot(xs, [1.0, 2.0, 3.0], 1)


@pcbatch.autobatch
def batched_form_fails(xs):
    doubled = xs * 2.0
    return weighted(doubled) + 1.0


ARGUMENTS = {"batched_form_fails": (np.ones((2, 3), np.float32),)}
