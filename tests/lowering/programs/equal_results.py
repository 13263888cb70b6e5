"""A tail call whose caller gives another type is made of an instance that gives it too."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))


@pcbatch.autobatch
def count(n, found):
    if n == 0:
        return found
    return count(n - 1, found + 1)


@pcbatch.autobatch
def equal_results(x, n):
    if x > 0.0:
        return x
    return count(n, 0)
