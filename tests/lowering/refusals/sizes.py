"""Sizes that lanes compute: which variable it is, and why it is not one number for all."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.ones((2, 4), np.float32), np.array([1, 2], np.int32))


@pcbatch.autobatch
def sizes(v, n):
    k = 2
    if n > 1:
        k = 3
    best = tf.reduce_sum(tf.math.top_k(v, k)[0])
    count = 0
    while count < n:
        count += 1
    flat = tf.reduce_sum(tf.ones([count]))
    last = n - 1
    if n > 3:
        best += 1.0
    return best + flat + tf.reduce_sum(v, axis=last) + windows(v, n)


@pcbatch.autobatch
def windows(v, n):
    return tf.reduce_sum(tf.reshape(v, [n, -1]))
