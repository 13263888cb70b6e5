"""Bools in arithmetic are ints, as in Python: counts, sums of comparisons, masks as factors."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "float32", "float32", "int32", "int32", "float32")


def batch(rng, lanes):
    return rng.normal(size=(lanes, 5)).astype(np.float32), rng.integers(-2, 3, lanes).astype(np.int32)


@pcbatch.autobatch
def counted_flags(x, n):
    count = 0
    for value in x:
        count += value > 0.0
    both = (n > 0) + (n > 1) + True
    positive = (x > 0.0) * x
    scaled = (n > 0) * x[0] - (n == 1)
    falls = sum(x[i] > x[i + 1] for i in range(4))
    where = -(n > 0) + abs(n < 0) + n * (n == 2) + ((n > 0) == 1)
    return count, both, positive, scaled, falls + sum(x > 1.0), where, (n > 0) / 4


def twin(x, n):
    count = len([value for value in x if value > 0])
    both = [1, 2, 3][min(max(n, 0), 2)]
    scaled = (float(x[0]) if n > 0 else 0.0) - (1 if n == 1 else 0)
    falls = len([i for i in range(4) if x[i] > x[i + 1]]) + len([value for value in x if value > 1])
    where = {-2: 1, -1: 1, 0: 0, 1: 0, 2: 2}[n]
    return count, both, np.maximum(x, 0), scaled, falls, where, 0.25 if n > 0 else 0.0
