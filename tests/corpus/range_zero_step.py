"""A step of zero is Python's ValueError: those lanes fail, and no others."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def range_zero_step(n, step):
    turns = 0
    for _ in range(0, n, step):
        turns += 1
    return turns


def batch(rng, lanes):
    return rng.integers(0, 9, lanes, dtype=np.int32), rng.integers(0, 3, lanes, dtype=np.int32)


def twin(n, step):
    return -(-n // step)


def status(n, step):
    return "RAISED" if step == 0 else "OK"


def message(n, step):
    return "range() arg 3 must not be zero"
