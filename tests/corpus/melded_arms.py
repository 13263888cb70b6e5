"""One function called in both arms of a branch, on other operands: it runs once, for the lanes of both."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "int32")


def smooth(x, weight):
    return tf.tanh(x) * weight


@pcbatch.autobatch
def melded_arms(x, low, high):
    turns = 0
    while turns < 6:
        scale = 1
        if x > 0:
            scale = 2
            x = smooth(x, low)
            x = x + 0.5
        else:
            x = smooth(low, high)
            x = x - 0.25
        turns = turns + scale
    return x, turns


def batch(rng, lanes):
    return tuple(rng.normal(size=lanes).astype(np.float32) for _ in range(3))


def twin(x, low, high):
    turns = 0
    while turns < 6:
        positive = x > 0
        x = np.tanh(x if positive else low) * (low if positive else high) + (0.5 if positive else -0.25)
        turns += 2 if positive else 1
    return x, turns
