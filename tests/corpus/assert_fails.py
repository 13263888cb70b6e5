"""An assert in a loop that fails in some lanes, with a message that shows the lane's value."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def assert_fails(n):
    total = 0
    for i in range(n):
        assert i * i < 30, f"{i} squared is too large"
        total += i
    return total


def batch(rng, lanes):
    return (rng.integers(0, 12, lanes, dtype=np.int32),)


def twin(n):
    return n * (n - 1) // 2


def status(n):
    return "ASSERTION" if n > 6 else "OK"


def message(n):
    return "6 squared is too large"
