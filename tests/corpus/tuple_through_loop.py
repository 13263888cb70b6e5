"""A tuple as a loop variable, its items of different types."""

import numpy as np

import pcbatch

DTYPES = ("float32", "int32")


@pcbatch.autobatch
def tuple_through_loop(x, n):
    state = (x, 1)
    for i in range(n):
        x, count = state
        state = (x * 0.5 + i, count + 1)
    return state


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(x, n):
    return x * 0.5**n + sum(i * 0.5 ** (n - 1 - i) for i in range(n)), n + 1
