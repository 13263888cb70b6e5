"""Undecorated functions and a TensorFlow function under another name, called from the body."""

import math

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)
squash = tf.tanh


def cubic(x):
    return x * x * x - x


def damped(x, rate=0.5):
    return squash(rate * cubic(x))


@pcbatch.autobatch
def closure_functions(x, n):
    for _ in range(n):
        x = x - damped(x, rate=0.25) if x > 0.0 else x + squash(x)
    return x


def batch(rng, lanes):
    return rng.uniform(-1, 1.5, lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)


def twin(x, n):
    for _ in range(n):
        x += math.tanh(x) if x <= 0 else math.tanh((x - x**3) / 4)
    return x
