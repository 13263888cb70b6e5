"""A helper that is not called by its name uses `math`, NumPy and `if` on a lane's tensor: what to write."""

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


HELPERS = (wave, damped, positive_part)


@pcbatch.autobatch
def newcomer_helper(x):
    a = HELPERS[0](x)
    if x > 1.0:
        b = HELPERS[1](x)
    else:
        b = HELPERS[2](x)
    return a + b
