"""A float64 program loses nothing on the way: literals, counters, conversions and functions are as wide as Python's."""

import math

import numpy as np

import pcbatch

DTYPES = ("float64", "float64", "float64")
TWIN_TOLERANCE = 1e-14


@pcbatch.autobatch
def float64_throughout(x, n):
    step = 0.1
    total = 0.0
    for i in range(5):
        total = total + step * i / 3
    scale = 1.0 if x > 0.0 else 1.1
    if n > 2:
        scale = scale / 7
    return x * total, float(x) * scale + float(n) * step * x, math.exp(x) * math.sqrt(n) * x + round(x, 3)


def batch(rng, lanes):
    return rng.uniform(-1, 1, lanes), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(x, n):
    scale = (1.1, 1.0)[x > 0] / (1, 7)[n > 2]
    return x * (0.1 * 10 / 3), x * scale + n * 0.1 * x, float(np.exp(x)) * n**0.5 * x + round(x, 3)
