"""Randomness with hidden state would be drawn once for all lanes; here a helper draws it."""

import numpy as np
import tensorflow as tf

import pcbatch


def jittered(x):
    return x + tf.random.normal([])


@pcbatch.autobatch
def hidden_random(x):
    while x < 10.0:
        x = jittered(x) * 2.0
    return x


ARGUMENTS = {"hidden_random": (np.array([1.0, 2.0], np.float32),)}
