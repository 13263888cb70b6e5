"""A callee's comprehension has a variable of the name of the caller's parameter, which it gets. In: reference, graph."""

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
def f0(n, c, q):
    if n <= 0:
        return sum([m * q for m in (c, c + 1)]) % 29
    c = (c + (lambda m: m - q)(n)) % 29
    return f0(n - 1, c, q)


@pcbatch.autobatch
def main(n, a, b, x, xs, y, w, m):
    t0 = f0(n, a, m)
    return f0(n - 1, t0, m) + t0
