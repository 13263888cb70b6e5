"""Newton's iteration until the residual is small; float64."""

import math

import numpy as np

import pcbatch

DTYPES = ("float64", "int32")
TWIN_TOLERANCE = 1e-9


@pcbatch.autobatch
def newton_root(x):
    y = x
    turns = 0
    while abs(y * y - x) > 1e-9 * x:
        y = 0.5 * (y + x / y)
        turns += 1
    return y, turns


def batch(rng, lanes):
    return (np.exp(rng.uniform(-3, 6, lanes)),)


def twin(x):
    # The error e of y satisfies e' = e^2 / (2 y): count the turns from that alone.
    root, turns = math.sqrt(x), 0
    error = x - root
    while abs(error * (error + 2 * root)) > 1e-9 * x:
        error = error * error / (2 * (error + root))
        turns += 1
    return root, turns
