"""The other of two modules whose globals have equal names and different values."""

import numpy as np

import pcbatch

COUNT = 5
WEIGHT = np.float32(7.0)


def helper(x):
    return COUNT * x


@pcbatch.autobatch
def weighted(x):
    return helper(x) * WEIGHT
