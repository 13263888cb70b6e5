"""Sizes that lanes compute: which variable it is, and why it is not one number for all."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def windows(v, n):
    return tf.reduce_sum(tf.reshape(v, [n, -1]))


@pcbatch.autobatch
def on_some_paths(v, n):
    k = 2
    if n > 1:
        k = 3
    return tf.reduce_sum(tf.math.top_k(v, k)[0])


@pcbatch.autobatch
def counted(v, n):
    count = 0
    while count < n:
        count += 1
    return tf.reduce_sum(tf.ones([count]))


@pcbatch.autobatch
def axis(v, n):
    last = n - 1
    return tf.reduce_sum(v, axis=last)


@pcbatch.autobatch
def in_a_callee(v, n):
    return windows(v, n)


BATCH = (np.ones((2, 4), np.float32), np.array([1, 2], np.int32))
ARGUMENTS = dict.fromkeys(["on_some_paths", "counted", "axis", "in_a_callee"], BATCH)
