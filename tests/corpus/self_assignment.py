"""Assignments of a variable to itself and from itself, and to a copy of itself."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def self_assignment(n):
    n = n
    x = n
    x = x + x
    n = n + 1
    n = n * n - n
    x = x - n
    return n, x


def batch(rng, lanes):
    return (rng.integers(-20, 20, lanes, dtype=np.int32),)


def twin(n):
    return n * (n + 1), 2 * n - n * (n + 1)
