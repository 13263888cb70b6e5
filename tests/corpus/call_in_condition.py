"""Batched calls in the conditions of `if` and `while`, under `not`, `and` and `or`."""

import math

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def is_square(n):
    root = 0
    while root * root < n:
        root += 1
    return root * root == n


@pcbatch.autobatch
def call_in_condition(n):
    steps = 0
    while n > 0 and not is_square(n):
        n -= 2
        steps += 1
    if is_square(n) or is_square(n + 2):
        return steps
    return -steps


def batch(rng, lanes):
    return (rng.integers(0, 20, lanes, dtype=np.int32),)


def twin(n):
    squares = [k * k for k in range(10)]
    stop = next(k for k in range(n, -2, -2) if k <= 0 or k in squares)
    steps = (n - stop) // 2
    return steps if stop in squares or math.isqrt(stop + 2) ** 2 == stop + 2 else -steps
