"""Batched calls in the bounds of a range and in the body of the loop; the callee has a loop of its own."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def triangle(n):
    total = 0
    for i in range(n + 1):
        total += i
    return total


@pcbatch.autobatch
def call_in_range(n):
    total = 0
    for i in range(n, triangle(n)):
        total += triangle(i) - i
    return total


def batch(rng, lanes):
    return (rng.integers(0, 5, lanes, dtype=np.int32),)


def twin(n):
    return sum(i * (i - 1) // 2 for i in range(n, n * (n + 1) // 2))
