"""A division whose quotient nobody reads still fails where the divisor is zero."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def unused_fault(a, b):
    for _ in range(2):
        _unused = a // b
    return a


def batch(rng, lanes):
    return rng.integers(-9, 9, lanes, dtype=np.int32), rng.integers(0, 3, lanes, dtype=np.int32)


def twin(a, b):
    return a


def status(a, b):
    return "ARITHMETIC" if b == 0 else "OK"
