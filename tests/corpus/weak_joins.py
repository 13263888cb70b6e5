"""Literals on one branch meet tensors, or literals of another kind, on the other."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "int64", "float64")


@pcbatch.autobatch
def weak_joins(x, n, y):
    if n > 3:
        a = 0
    else:
        a = x
    if n % 2 == 0:
        b = 1
    else:
        b = 0.5
    c = 2
    if x > 0.0:
        c = n
    d = y if n < 5 else 0.25
    return a, b, c, d


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 8, lanes), rng.normal(size=lanes)


def twin(x, n, y):
    return (n <= 3) * x, (0.5, 1)[n % 2 == 0], (2, n)[x > 0], (0.25, y)[n < 5]
