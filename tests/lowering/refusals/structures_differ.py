"""Structures must be the same on every path: fields, keys and their order, lengths."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def keys(x, n):
    if n > 0:
        state = {"x": x, "n": n}
    else:
        state = {"x": x}
    return state


BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))
ARGUMENTS = dict.fromkeys(["keys"], BATCH)
