"""A literal index out of a static shape fails the lanes that come to it, and no others."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def literal_index(x, n):
    pair = tf.stack([x, x * 2.0])
    if n > 2:
        return pair[-1] + pair[5]
    for i in range(n):
        x += pair[i % 2] if i < 2 else pair[-3]
    return x


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)


def twin(x, n):
    return x * (1, 2, 4)[n]


def status(x, n):
    return "INDEX" if n > 2 else "OK"
