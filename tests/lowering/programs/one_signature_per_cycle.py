"""Functions that call each other have one signature each: `even` is given a tensor first and a weak number by `odd`."""

import numpy as np

import pcbatch

BATCH = (np.array([3, 4], np.int32),)


@pcbatch.autobatch
def even(n):
    if n == 0:
        return True
    return odd(n - 1)


@pcbatch.autobatch
def odd(n):
    if n == 0:
        return False
    if n == 1:
        return even(0)
    return even(n - 1)


one_signature_per_cycle = even
