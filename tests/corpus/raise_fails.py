"""A raise in a callee that is reached in some lanes, from either of two calls."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def root(x):
    if x < 0.0:
        raise ValueError(f"no real root of {x}")
    return tf.sqrt(x)


@pcbatch.autobatch
def raise_fails(x, y):
    return root(x) + root(y)


def batch(rng, lanes):
    return rng.integers(-1, 4, lanes).astype(np.float32), rng.integers(-1, 4, lanes).astype(np.float32)


def twin(x, y):
    return x**0.5 + y**0.5


def status(x, y):
    return "RAISED" if x < 0 or y < 0 else "OK"


def message(x, y):
    return "no real root of -1"
