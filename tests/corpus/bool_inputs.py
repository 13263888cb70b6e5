"""Truth values as arguments, one and a vector of them."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "bool")


@pcbatch.autobatch
def bool_inputs(flag, mask, vector):
    if flag and tf.reduce_any(mask):
        vector = tf.where(mask, vector, tf.zeros_like(vector))
    elif not flag:
        vector = -vector
    return tf.reduce_sum(vector), flag or mask[0]


def batch(rng, lanes):
    return rng.random(lanes) < 0.5, rng.random((lanes, 3)) < 0.3, rng.normal(size=(lanes, 3)).astype(np.float32)


def twin(flag, mask, vector):
    if not flag:
        return -float(vector.sum()), bool(mask[0])
    return float(vector[mask].sum() if mask.any() else vector.sum()), True
