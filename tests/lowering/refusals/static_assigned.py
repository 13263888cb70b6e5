"""A static parameter has one value in the whole function."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32),)


@pcbatch.autobatch(static_argnames="times")
def doubled(x, times):
    while times > 0:
        x = x * 2.0
        times -= 1
    return x


@pcbatch.autobatch
def static_assigned(x):
    return doubled(x, 3)
