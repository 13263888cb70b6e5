"""Slices of an array that the recursion changes and keeps on its stack."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def saved_slices(a, i):
    if i >= 4:
        return a, sum(a)
    kept = a[i : i + 2] + 0
    a[i : i + 2] = kept[::-1]
    b, total = saved_slices(a, i + 1)
    b[i : i + 2] += kept
    return b, total + a[i]


def batch(rng, lanes):
    return rng.integers(-9, 9, (lanes, 6), dtype=np.int32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(a, i):
    if i >= 4:
        return a, int(a.sum())
    kept = [int(a[i]), int(a[i + 1])]
    a[i], a[i + 1] = kept[1], kept[0]
    b, total = twin(a.copy(), i + 1)
    b[i], b[i + 1] = b[i] + kept[0], b[i + 1] + kept[1]
    return b, total + int(a[i])
