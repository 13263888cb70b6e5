"""A loop over the bits of the exponent; a variable called `result` that starts as a weak float."""

import numpy as np

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def power_by_squaring(x, n):
    result = 1.0
    while n > 0:
        if n % 2 == 1:
            result *= x
        x *= x
        n //= 2
    return result


def batch(rng, lanes):
    return rng.uniform(0.5, 1.5, lanes).astype(np.float32), rng.integers(0, 13, lanes, dtype=np.int32)


def twin(x, n):
    return x**n
