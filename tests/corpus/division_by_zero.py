"""Integer `//` and `%` by zero in some lanes, each at a place of its own."""

import math

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def division_by_zero(a, b):
    quotient = a // b
    return quotient + 100 * (a % (b + 1))


def batch(rng, lanes):
    return rng.integers(-9, 9, lanes, dtype=np.int32), rng.integers(-3, 3, lanes, dtype=np.int32)


def twin(a, b):
    quotient, divisor = math.floor(a / b), b + 1
    return quotient + 100 * (a - divisor * math.floor(a / divisor))


def status(a, b):
    return "ARITHMETIC" if b in (0, -1) else "OK"
