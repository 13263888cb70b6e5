"""Keyword arguments, out of order too, and default values, of the entry and of a callee with several signatures."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def affine(x, slope=2, offset=1):
    return x * slope + offset


@pcbatch.autobatch
def keyword_default(x, y=10):
    return affine(x) + affine(x, offset=y) + affine(slope=3, x=y) + affine(x, 5, 7)


def batch(rng, lanes):
    return (rng.integers(-9, 9, lanes, dtype=np.int32),)


def twin(x):
    return 9 * x + 49
