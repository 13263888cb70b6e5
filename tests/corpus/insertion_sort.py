"""Stores in a while loop whose condition guards the index."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def insertion_sort(values):
    for i in range(1, len(values)):
        key = values[i]
        j = i - 1
        while j >= 0 and values[j] > key:
            values[j + 1] = values[j]
            j -= 1
        values[j + 1] = key
    return values


def batch(rng, lanes):
    return (rng.integers(-9, 9, (lanes, 5), dtype=np.int32),)


def twin(values):
    return np.sort(values)
