"""Three recursive calls in one expression."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def tribonacci(n):
    if n < 3:
        return 1
    return tribonacci(n - 1) + tribonacci(n - 2) + tribonacci(n - 3)


def batch(rng, lanes):
    return (rng.integers(0, 8, lanes, dtype=np.int32),)


def twin(n):
    values = [1, 1, 1]
    while len(values) <= n:
        values.append(sum(values[-3:]))
    return values[n]
