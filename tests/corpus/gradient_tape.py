"""`with tf.GradientTape()`: descent until a gradient is small, the block being part of one piece; one of a variable."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "float32", "int32")
WEIGHT = tf.Variable([0.5, 0.25])


@pcbatch.autobatch
def gradient_tape(x, rate):
    steps = 0
    of_weight = tf.zeros_like(WEIGHT)
    while steps < 20:
        with tf.name_scope("slope"), tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y: tf.Tensor = tf.reduce_sum(x * x)
            y += WEIGHT[0] * x[0] * x[1]
        slope = tape.gradient(y, x)
        of_weight = of_weight + tape.gradient(y, WEIGHT)
        if tf.reduce_max(tf.abs(slope)) < 0.1:
            break
        x -= rate * slope
        steps += 1
    return x, of_weight, steps


def batch(rng, lanes):
    return rng.normal(size=(lanes, 2)).astype(np.float32), rng.uniform(0.05, 0.3, lanes).astype(np.float32)


def twin(x, rate):
    steps, of_weight = 0, np.zeros(2, np.float32)
    while steps < 20:
        of_weight = of_weight + np.array([x[0] * x[1], 0.0], np.float32)
        slope = 2 * x + 0.5 * x[::-1]
        if np.max(np.abs(slope)) < 0.1:
            break
        x = x - np.float32(rate) * slope
        steps += 1
    return x, of_weight, steps
