"""Stores beyond either end of a lane array fail; negative indices within it count from the end."""

import numpy as np

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def store_out_of_range(values, i):
    values[i] = 9.0
    values[-1] = values[0]
    return values


def batch(rng, lanes):
    return rng.normal(size=(lanes, 3)).astype(np.float32), rng.integers(-5, 5, lanes, dtype=np.int32)


def twin(values, i):
    first = 9.0 if i % 3 == 0 else values[0]
    return np.array([first, 9.0 if i % 3 == 1 else values[1], first])


def status(values, i):
    return "OK" if -3 <= i < 3 else "INDEX"
