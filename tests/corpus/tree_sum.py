"""Recursion over a tree that is stored in an array, each lane with a tree of its own size."""

import numpy as np

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def tree_sum(values, size, i=0):
    if i >= size:
        return 0.0
    return values[i] + tree_sum(values, size, 2 * i + 1) + tree_sum(values, size, 2 * i + 2)


def batch(rng, lanes):
    return rng.normal(size=(lanes, 7)).astype(np.float32), rng.integers(0, 8, lanes, dtype=np.int32)


def twin(values, size):
    return float(np.sum(values[:size]))
