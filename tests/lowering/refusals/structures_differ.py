"""Structures must be the same on every path: fields, keys and their order, lengths, and None where there is None."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def keys(x, n):
    if n > 0:
        state = {"x": x, "n": n}
    else:
        state = {"x": x}
    return state


@pcbatch.autobatch
def none(x, n):
    if n > 0:
        cache = None
    else:
        cache = x
    return cache


BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))
ARGUMENTS = dict.fromkeys(["keys", "none"], BATCH)
