"""Slices that leave the array, which Python would cut short: the lane fails, as its array has another shape."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32")


@pcbatch.autobatch
def slice_out_of_range(a, i):
    w = a[i : i + 3] * 1.0
    a[i - 1 : i + 1] = 0.5
    return w, a


def batch(rng, lanes):
    return rng.normal(size=(lanes, 5)).astype(np.float32), rng.integers(-7, 7, lanes, dtype=np.int32)


def status(a, i):
    whole = len(a[i : i + 3]) == 3 and len(a[i - 1 : i + 1]) == 2
    return "OK" if whole else "INDEX"


def message(a, i):
    return "the slice leaves the array"
