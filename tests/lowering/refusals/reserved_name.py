"""One name is taken: generated code knows pcbatch's checked operations (`//` here) as `_ops`."""

import numpy as np

import pcbatch

BATCH = (np.array([4, 6], np.int32),)


@pcbatch.autobatch
def reserved_name(n):
    _ops = n // 2
    return _ops + 1
