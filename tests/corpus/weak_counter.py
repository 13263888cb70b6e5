"""A range counter is a weak number: times 0.5 it is a float, and it takes the dtype of the tensor that it meets."""

import numpy as np

import pcbatch

DTYPES = ("float64", "float32", "int64")


@pcbatch.autobatch
def weak_counter(x, n, k):
    total = 0
    for i in range(n):
        total += i * 0.5
        x = x + i
        k = k * 2 + i
    return x, total, k


def batch(rng, lanes):
    return rng.normal(size=lanes), rng.integers(0, 7, lanes, dtype=np.int32), rng.integers(0, 2**40, lanes)


def twin(x, n, k):
    return x + n * (n - 1) // 2, n * (n - 1) / 4, k * 2**n + 2**n - n - 1
