"""Tail recursion with an accumulator that has a default value; the weak default meets int32 in the recursive call."""

import math

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def factorial_accumulator(n, product=1):
    if n <= 1:
        return product
    return factorial_accumulator(n - 1, product * n)


def batch(rng, lanes):
    return (rng.integers(0, 13, lanes, dtype=np.int32),)


def twin(n):
    return math.factorial(n)
