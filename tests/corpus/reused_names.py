"""Names that are used again for something else: another dtype, another shape, a tuple. No path joins the two."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "float32", "float32")


@pcbatch.autobatch
def reused_names(x, n):
    s = 7
    while n > 0:
        s += n
        n -= 1
    half = s // 2
    s = x * 0.5
    while s > 1.0:
        s = s - 1.0
    total = s
    s = (tf.zeros(2), s)
    for n in range(half % 3):
        s = (s[0] + x, s[1] + n)
    n = s[1]
    return half, total, tf.reduce_sum(s[0]) + n


def batch(rng, lanes):
    return rng.uniform(0, 8, lanes).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(x, n):
    half = (7 + n * (n + 1) // 2) // 2
    total = x / 2 - max(int(np.ceil(x / 2)) - 1, 0)
    turns = half % 3
    return half, total, 2 * x * turns + total + turns * (turns - 1) // 2
