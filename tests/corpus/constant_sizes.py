"""Sizes, axes and counts that are one number on every path, where lanes branch and loop in between."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "float32", "float32")


@pcbatch.autobatch
def constant_sizes(xs, n, axis=0):
    K = 3
    h, w = xs.shape
    kind = "first"
    wave = tf.abs
    if n > 2:
        xs = -xs
    total = tf.zeros([K])
    while n > 0:
        first = tf.reshape(xs, [h * w])[:K]
        total += first * tf.ones([K]) if kind == "first" else -first
        n -= 1
    return total, wave(tf.reduce_sum(xs, axis=axis)), mean_of(tf.reshape(xs, [h * w]), w)


@pcbatch.autobatch
def mean_of(v, k):
    rows = tf.reshape(v, [-1, k])
    i, total = 0, tf.zeros([k])
    while i < len(rows):
        total += rows[i]
        i += 1
    return total / len(rows)


def batch(rng, lanes):
    return rng.standard_normal((lanes, 2, 4), np.float32), rng.integers(0, 5, lanes, dtype=np.int32)


def twin(xs, n):
    xs = -xs if n > 2 else xs
    return xs.ravel()[:3] * max(n, 0), np.abs(xs.sum(0)), xs.mean(0)
