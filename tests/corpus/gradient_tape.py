"""`with tf.GradientTape()`: gradient descent until the gradient is small, the block being part of one piece."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32")


@pcbatch.autobatch
def gradient_tape(x, rate):
    steps = 0
    while steps < 20:
        with tf.name_scope("slope"), tf.GradientTape() as tape:
            tape.watch(x)
            y: tf.Tensor = tf.reduce_sum(x * x)
            y += 0.5 * x[0] * x[1]
        slope = tape.gradient(y, x)
        if tf.reduce_max(tf.abs(slope)) < 0.1:
            break
        x -= rate * slope
        steps += 1
    return x, steps


def batch(rng, lanes):
    return rng.normal(size=(lanes, 2)).astype(np.float32), rng.uniform(0.05, 0.3, lanes).astype(np.float32)


def twin(x, rate):
    steps = 0
    while steps < 20:
        slope = 2 * x + 0.5 * x[::-1]
        if np.max(np.abs(slope)) < 0.1:
            break
        x = x - np.float32(rate) * slope
        steps += 1
    return x, steps
