"""The bounds of a range are evaluated once, and assigning the counter in the body does not disturb the loop."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "int32")


@pcbatch.autobatch
def range_evaluated_once(n):
    turns = 0
    last = -1
    for i in range(n):
        n = n - 1
        i = i * 2
        last = i
        turns += 1
    return turns, last, n


def batch(rng, lanes):
    return (rng.integers(0, 7, lanes, dtype=np.int32),)


def twin(n):
    return n, 2 * n - 2 if n else -1, 0
