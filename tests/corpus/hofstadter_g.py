"""A nested call inside an expression that also needs the caller's argument afterwards: n - g(g(n - 1))."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def hofstadter_g(n):
    if n == 0:
        return 0
    return n - hofstadter_g(hofstadter_g(n - 1))


def batch(rng, lanes):
    return (rng.integers(0, 9, lanes, dtype=np.int32),)


def twin(n):
    return int((n + 1) * (5**0.5 - 1) / 2)
