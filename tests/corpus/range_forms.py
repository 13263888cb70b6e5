"""Literal ranges: one, two and three bounds, a negative step, an empty range; a body that does nothing."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def range_forms(n):
    total = 0
    for i in range(3):
        total += i * n
    for i in range(2, 4):
        total += i
    for i in range(7, 0, -3):
        total = 2 * total + i
    for _ in range(0):
        total = -1
    for _ in range(n):
        pass
    return total


def batch(rng, lanes):
    return (rng.integers(0, 6, lanes, dtype=np.int32),)


def twin(n):
    return 8 * (3 * n + 5) + 4 * 7 + 2 * 4 + 1
