"""One name for two values; what is left of the copy of one is read where the other's name is hidden. In: graph."""

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
    t0 = b
    while a > 0:
        a = a - 3
    b = sum([b * t0 for b in (a, a + 1)])
    q = x
    x = sum(sum(q for x in (x, 1.0)) for x in (x, 1.0))
    return x + q, b
