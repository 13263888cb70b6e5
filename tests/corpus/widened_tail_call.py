"""Tail calls of functions whose results are weak where the caller's are not: jumps all the same, however deep."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)
OPTIONS = {"max_depth": 1}


@pcbatch.autobatch
def steps(n, count):
    if n <= 0:
        return count
    return steps(n - 1, count + 1)


@pcbatch.autobatch
def weigh(x, n):
    if n % 2 == 0:
        return x
    return steps(n, 0)


@pcbatch.autobatch
def widened_tail_call(x, n):
    if x < 0.0:
        return weigh(x, n)
    return tf.cast(steps(n, 0), tf.float32) + x


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 9, lanes, dtype=np.int32)


def twin(x, n):
    return (x if n % 2 == 0 else float(n)) if x < 0 else x + n
