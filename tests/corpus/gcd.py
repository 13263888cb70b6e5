"""A while loop around a swap: `a, b = b, a % b`."""

import math

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


def batch(rng, lanes):
    return rng.integers(1, 100, lanes, dtype=np.int32), rng.integers(0, 100, lanes, dtype=np.int32)


def twin(a, b):
    return math.gcd(a, b)
