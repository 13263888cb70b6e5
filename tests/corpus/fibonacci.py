"""Two-way recursion: the worked case of the paper and of the docs."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def fibonacci(n):
    if n <= 1:
        return 1
    return fibonacci(n - 2) + fibonacci(n - 1)


def batch(rng, lanes):
    return (rng.integers(0, 9, lanes, dtype=np.int32),)


def twin(n):
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b
    return a
