"""A helper that is not batched uses `math`, NumPy and `if` on a lane's tensor: the helper's line, and what to write."""

import math

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0]),)


def wave(x):
    return math.sin(x)


def damped(x):
    return np.exp(-x) * 2.0


def positive_part(x):
    if x > 0.0:
        return x
    return 0.0 * x


@pcbatch.autobatch
def newcomer_helper(x):
    a = wave(x)
    if x > 1.0:
        b = damped(x)
    else:
        b = positive_part(x)
    return a + b
