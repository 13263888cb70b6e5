"""Numbers, a tuple and a truth value of the module, read in expressions, conditions and bounds."""

import numpy as np

import pcbatch

DTYPES = ("float32", "int32")
SCALE = 3
SHIFT = 0.5
LIMITS = (2, 5)
DOUBLED = True


@pcbatch.autobatch
def closure_numbers(x, n):
    if n > LIMITS[0]:
        n = n * SCALE
    for _ in range(LIMITS[1]):
        x = x + SHIFT
    if DOUBLED:
        x = x * 2.0
    return x, n


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(x, n):
    return 2 * x + 5, 3 * n if n > 2 else n
