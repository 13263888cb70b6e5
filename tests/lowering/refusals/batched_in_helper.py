"""A batched function called by what TensorFlow calls: a batch inside each lane, a call that nobody sees."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def reduced(n):
    return n // gcd(n, 6)


@pcbatch.autobatch
def batched_in_helper(n):
    n = n + 6
    return tf.map_fn(reduced, tf.stack([n, n]))


ARGUMENTS = {"batched_in_helper": (np.array([12, 18], np.int32),)}
