"""A while loop that counts."""

import math

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def integer_root(n):
    root = 0
    while (root + 1) * (root + 1) <= n:
        root += 1
    return root


def batch(rng, lanes):
    return (rng.integers(0, 60, lanes, dtype=np.int32),)


def twin(n):
    return math.isqrt(n)
