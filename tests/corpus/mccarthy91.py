"""A call as argument of a call of the same function: f(f(n + 11))."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def mccarthy91(n):
    if n > 100:
        return n - 10
    return mccarthy91(mccarthy91(n + 11))


def batch(rng, lanes):
    return (rng.integers(88, 112, lanes, dtype=np.int32),)


def twin(n):
    return max(91, n - 10)
