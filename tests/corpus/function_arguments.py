"""Functions that are handed to functions: lambdas that read values of the lane, batched functions, TensorFlow's own."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "float32", "int32")


@pcbatch.autobatch
def root(g, low, high):
    while high - low > 1e-3:
        middle = (low + high) / 2.0
        if g(middle) > 0.0:
            high = middle
        else:
            low = middle
    return (low + high) / 2.0


@pcbatch.autobatch
def integral(g, low, high, depth):
    middle = (low + high) / 2.0
    if depth == 0:
        return (high - low) * g(middle)
    return integral(g, low, middle, depth - 1) + integral(g, middle, high, depth - 1)


@pcbatch.autobatch
def halvings(x):
    return 0 if x < 0.1 else 1 + halvings(x / 2.0)


@pcbatch.autobatch
def both(g, x, y):
    return g(x) + 10 * g(y)


@pcbatch.autobatch
def function_arguments(m, e):
    anomaly = root(lambda t: t - e * tf.sin(t) - m, 0.0, 4.0)
    return anomaly, integral(tf.cos, 0.0, m, 2), both(halvings, m, e)


def batch(rng, lanes):
    return rng.uniform(0.1, 3.0, lanes).astype(np.float32), rng.uniform(0.0, 0.9, lanes).astype(np.float32)


TWIN_TOLERANCE = 2e-3


def twin(m, e):
    t = m
    for _ in range(200):
        t = m + e * np.sin(t)
    middles = (np.arange(4) + 0.5) * m / 4
    turns = [0, 0]
    for place, x in enumerate((m, e)):
        while x >= 0.1:
            x, turns[place] = np.float32(x) / np.float32(2), turns[place] + 1
    return t, np.cos(middles).sum() * m / 4, turns[0] + 10 * turns[1]
