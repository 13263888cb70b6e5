"""An assignment expression in the condition of a while loop."""

import math

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def walrus(a, b):
    while (remainder := a % b) != 0:
        a, b = b, remainder
    return b


def batch(rng, lanes):
    return rng.integers(1, 100, lanes, dtype=np.int32), rng.integers(1, 100, lanes, dtype=np.int32)


def twin(a, b):
    return math.gcd(a, b)
