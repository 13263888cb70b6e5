"""Mutual tail recursion with truth values as results."""

import numpy as np

import pcbatch

DTYPES = ("bool",)


@pcbatch.autobatch
def parity(n):
    if n == 0:
        return True
    return odd(n - 1)


@pcbatch.autobatch
def odd(n):
    if n == 0:
        return False
    return parity(n - 1)


def batch(rng, lanes):
    return (rng.integers(0, 12, lanes, dtype=np.int32),)


def twin(n):
    return n % 2 == 0
