"""A function outside the recursive cycle is compiled once for each signature that it is called with, and no more."""

import numpy as np

import pcbatch

BATCH = (np.array([3, 4], np.int32), np.array([0.5, 1.0], np.float32))


@pcbatch.autobatch
def square(x):
    return x * x


@pcbatch.autobatch
def specialised(n, x):
    return square(n), square(x), square(n + 1), square(2)
