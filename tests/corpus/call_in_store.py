"""Batched calls in the index and in the value of a store, and in the index of a read."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def clamped(i):
    return min(max(i, 0), 3)


@pcbatch.autobatch
def call_in_store(values, i):
    values[clamped(i)] = 10 * clamped(values[0])
    values[clamped(i + 1)] += 1
    return values, values[clamped(i - 1)]


def batch(rng, lanes):
    return rng.integers(-5, 9, (lanes, 4), dtype=np.int32), rng.integers(-3, 6, lanes, dtype=np.int32)


def twin(values, i):
    at, after, before = np.clip([i, i + 1, i - 1], 0, 3)
    values[at] = 10 * np.clip(values[0], 0, 3)
    values[after] += 1
    return values, int(values[before])
