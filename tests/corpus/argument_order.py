"""Arguments are evaluated left to right: where two of them would fail, the first one's failure is reported."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def positive(x, place):
    if x <= 0:
        raise ValueError(f"argument {place} is not positive")
    return x


@pcbatch.autobatch
def weighted(a, b, c):
    return a + 10 * b + 100 * c


@pcbatch.autobatch
def argument_order(a, b, c):
    return weighted(positive(a, 1), c=positive(b, 2), b=positive(c, 3))


def batch(rng, lanes):
    return tuple(rng.integers(0, 5, lanes, dtype=np.int32) for _ in range(3))


def twin(a, b, c):
    return a + 100 * b + 10 * c


def status(*numbers):
    return "OK" if all(numbers) else "RAISED"


def message(*numbers):
    return f"argument {numbers.index(0) + 1} is not positive"
