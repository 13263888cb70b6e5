"""Tail recursion in one arm of a conditional expression; the other arm must not divide by zero."""

import math

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def euclid(a, b):
    return a if b == 0 else euclid(b, a % b)


def batch(rng, lanes):
    return rng.integers(1, 100, lanes, dtype=np.int32), rng.integers(0, 100, lanes, dtype=np.int32)


def twin(a, b):
    return math.gcd(a, b)
