"""Reads of a lane array at an index computed by the lane."""

import bisect

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def binary_search(values, needle):
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < needle:
            low = middle + 1
        else:
            high = middle
    return low


def batch(rng, lanes):
    return np.sort(rng.integers(0, 20, (lanes, 8), dtype=np.int32), axis=1), rng.integers(-1, 21, lanes, dtype=np.int32)


def twin(values, needle):
    return bisect.bisect_left(values.tolist(), needle)
