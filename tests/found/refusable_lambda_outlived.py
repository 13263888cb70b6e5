"""A lambda reads what a variable holds when it is called, not when it was written. In: graph."""

import collections
import contextlib
import math

import numpy as np
import tensorflow as tf

import pcbatch

Pair = collections.namedtuple("Pair", "low high")
LIMIT = 3
SCALE = 0.5
STEP = tf.Variable(2)
TABLE = np.array([4, -3, 2, 7], np.int32)
WEIGHTS = tf.Variable([1, 5, -2, 3])


def apply(f, v):
    return f(v)


def keep(v):
    return v


def either(v, u):
    return v


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    g = lambda q: a * q
    t0 = g(b)
    a = a + 3
    return t0 + g(b)
