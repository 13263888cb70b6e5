"""Two tensors of different dtypes: which one gives way is not for a compiler to guess."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def two_dtypes(x, n):
    larger = x
    if x < 0.0:
        larger = n
    return larger


ARGUMENTS = {"two_dtypes": (np.array([1.0, -1.0], np.float32), np.array([1, 2], np.int32))}
