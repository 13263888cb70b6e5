"""Lambdas, comprehensions and generators whose variables have the names of others, here and in who calls."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",) * 3
t = 2.0


@pcbatch.autobatch
def summed(a):
    w = tf.add_n([x * a for x in (a, a + 1.0)])
    if w > 40.0:
        return w
    return summed(a + 1.0) + a


@pcbatch.autobatch
def names_in_scopes(x, xs):
    v = x * 3.0
    u = v
    listed = tf.add_n([v * u for v in (x, x + 1.0)])
    scale = x
    mapped = tf.vectorized_map(lambda x: x * scale + v, xs)
    called = (lambda x, k=u: x * scale + k)(x=listed, k=v)
    nested = sum(sum(v * u - x for x in (v, u)) for v in (x, t))
    bounded = tf.add_n([tf.where(v, 1.0, t) for v in (x < abs(v) < 9.0, x < 1.0)])
    again = u
    return listed + called + bounded, tf.reduce_sum(mapped) + nested, summed(x) + again


def batch(rng, lanes):
    x = rng.integers(-8, 9, lanes).astype(np.float32) / 2
    return x, rng.integers(-8, 9, (lanes, 3)).astype(np.float32)


def twin(x, xs):
    listed, v = 3 * x * (2 * x + 1), 3 * x
    nested = sum(w * v - y for w in (x, 2) for y in (w, v))
    total, a = 0.0, x
    while a * (2 * a + 1) <= 40:
        total, a = total + a, a + 1
    bounded = (1 if x < abs(v) < 9 else 2) + (1 if x < 1 else 2)
    return listed + listed * x + v + bounded, np.sum(xs * x + v) + nested, total + a * (2 * a + 1) + v
