"""Values of a lane that are printed: in arms, loops, recursion, before a fault, and of several kinds."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "float32")
TWIN_TOLERANCE = 1e-5


@pcbatch.autobatch
def debugged(n, x):
    pcbatch.debug("n = {}, x = {:.2f}", n, x[0])
    if n <= 0:
        pcbatch.debug("done", x, n == 0)
        return n, tf.reduce_sum(x)
    total = 0
    for i in range(n):
        pcbatch.debug("{} of {}", i, n)
        total = total + 6 // (i - 2)
    count, y = debugged(n - 2, x * 0.5)
    pcbatch.debug("back", count + total, 0.1)
    return count + total, y


def batch(rng, lanes):
    return rng.integers(-2, 4, lanes, dtype=np.int32), rng.normal(size=(lanes, 3)).astype(np.float32)


def status(n, x):
    return "ARITHMETIC" if n > 2 else "OK"


def message(n, x):
    return "integer division or modulo by zero"


def twin(n, x):
    total, turns = sum(6 // (i - 2) for i in range(n)), 0
    while n > 0:
        n, x, turns = n - 2, x * np.float32(0.5), turns + 1
    return n + total, x.sum()
