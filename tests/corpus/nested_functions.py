"""Functions inside a function: they read what is around them when they are called, and branch, loop and recurse."""

import math

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32", "float32", "float32", "int32")


@pcbatch.autobatch
def nested_functions(x, y, n):
    scale = 1.0
    relu = lambda v: v if v > 0.0 else math.exp(v) - 1.0  # noqa: E731

    def scaled(v, by=y + 1.0):
        doubled = v + v
        return doubled * scale * by

    def shrunk(v):
        while abs(v) > 1.0:
            v = v / 2.0
        return scaled(v)

    def binary(m):
        return 0 if m <= 0 else m % 2 + 10 * binary(m // 2)

    total = relu(x)
    if y > 0.0:
        scale = 3.0
        total += relu(y)
    y = 5.0
    squares = tf.map_fn(lambda v: relu_of(v) + scale, tf.stack([x, total]))
    return total + shrunk(4.0 * x), scaled(x, y), squares, binary(n)


def relu_of(v):
    return tf.nn.relu(v)


def batch(rng, lanes):
    x, y = rng.standard_normal((2, lanes)).astype(np.float32)
    return x, y, rng.integers(-2, 40, lanes, dtype=np.int32)


def twin(x, y, n):
    def relu(v):
        return v if v > 0 else math.exp(v) - 1

    scale, total = (3, relu(x) + relu(y)) if y > 0 else (1, relu(x))
    v = 4 * x
    while abs(v) > 1:
        v /= 2
    squares = np.maximum([x, total], 0) + scale
    return total + 2 * v * scale * (y + 1), 2 * x * scale * 5, squares, int(f"{max(n, 0):b}")
