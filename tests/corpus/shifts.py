"""Shifts and bits of ints, which tensors have no operators for; a negative count fails the lane."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "int32", "int64")


@pcbatch.autobatch
def shifts(n, k, big):
    mask = 1
    for i in range(3):
        mask |= 1 << (i * 2)
    n <<= 2
    return n >> k, (n << k) & ~mask, mask << k, big >> 3


def batch(rng, lanes):
    numbers = rng.integers(-1000, 1000, lanes, dtype=np.int32), rng.integers(-1, 12, lanes, dtype=np.int32)
    return *numbers, rng.integers(-(2**60), 2**60, lanes)


def twin(n, k, big):
    return 4 * n // 2**k, int(np.bitwise_and(4 * n * 2**k, -22)), 21 * 2**k, big // 8


def status(n, k, big):
    return "ARITHMETIC" if k < 0 else "OK"


def message(n, k, big):
    return "negative shift count"
