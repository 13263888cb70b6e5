"""Chained comparisons: of numbers, with a batched call in the middle, and with a guarded division at the end."""

import numpy as np

import pcbatch

DTYPES = ("bool", "bool", "int32")


@pcbatch.autobatch
def halve(x):
    return x // 2


@pcbatch.autobatch
def chained_comparison(low, x, high):
    inside = low <= x < high
    small = 0 < halve(x) < 3
    if 0 < low < 100 // low != high:
        return inside, small, 1
    return inside, small, 0


def batch(rng, lanes):
    return tuple(rng.integers(0, 9, lanes, dtype=np.int32) for _ in range(3))


def twin(low, x, high):
    return x in range(low, high), x in (2, 3, 4, 5), int(low != 0 and 100 // low > low and 100 // low != high)
