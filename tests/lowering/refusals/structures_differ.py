"""Structures must be the same on every path: fields, keys and their order, lengths, and None where there is None."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))


@pcbatch.autobatch
def structures_differ(x, n):
    if n > 0:
        state = {"x": x, "n": n}
        cache = None
        items = [x]
    else:
        state = {"n": n, "x": x}
        cache = x
        items = [x, x]
    return state, cache, items
