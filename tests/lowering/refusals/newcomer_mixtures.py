"""Numbers of two dtypes, methods that arrays have and tensors do not, a None that is not asked for."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def two_dtypes(x, n, shift=None):
    if x > 1.0:
        chosen = n
    else:
        chosen = x
    return chosen


@pcbatch.autobatch
def none(x, n, shift=None):
    return x + shift


BATCH = (np.array([1.0, 2.0], np.float32), np.array([1, 2], np.int32))
ARGUMENTS = dict.fromkeys(["two_dtypes", "none"], BATCH)
