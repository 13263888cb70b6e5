"""Python's rounding: floor division and remainder of negative numbers, divmod, round to even."""

import math

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "int32", "int32", "int32")


@pcbatch.autobatch
def rounding(a, b, x):
    quotient, remainder = divmod(int(a), int(b))
    return quotient, remainder, a // 3, a % -4, round(float(x))


def batch(rng, lanes):
    divisors = rng.choice(np.array([-4, -3, -1, 1, 2, 5], np.int32), lanes)
    return rng.integers(-20, 20, lanes, dtype=np.int32), divisors, (rng.integers(-9, 9, lanes) / 2).astype(np.float32)


def twin(a, b, x):
    quotient = math.floor(a / b)
    return quotient, a - b * quotient, math.floor(a / 3), -(-a % 4), int(np.rint(x))
