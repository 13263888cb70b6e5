"""A recursion in floats, its depth differing by lane."""

import numpy as np

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def geometric_series(x, n):
    if n == 0:
        return 1.0
    return 1.0 + x * geometric_series(x, n - 1)


def batch(rng, lanes):
    return rng.uniform(-0.9, 0.9, lanes).astype(np.float32), rng.integers(0, 9, lanes, dtype=np.int32)


def twin(x, n):
    return (1 - x ** (n + 1)) / (1 - x)
