"""Recursion nested in an argument, with very different depths by lane."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def batch(rng, lanes):
    return rng.integers(0, 3, lanes, dtype=np.int32), rng.integers(0, 3, lanes, dtype=np.int32)


def twin(m, n):
    return (n + 1, n + 2, 2 * n + 3)[m]
