"""What is copied has the name of a lambda's parameter, and the lambda reads the copy. In: reference, graph, xla."""

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
    t0 = a
    b = (lambda a: a * t0)(b) + sum(tf.vectorized_map(lambda a: a * t0, xs))
    result = x
    x = apply(lambda x: x - result, 2.0)
    return x, b
