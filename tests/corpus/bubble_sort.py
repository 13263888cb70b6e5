"""Two elements of a lane array change places in one statement; the loop stops early when nothing moved."""

import numpy as np

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def bubble_sort(values):
    n = len(values)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
                swapped = True
        if not swapped:
            break
    return values


def batch(rng, lanes):
    return (rng.normal(size=(lanes, 5)).astype(np.float32),)


def twin(values):
    return np.sort(values)
