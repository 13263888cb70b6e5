"""One of two modules whose globals have equal names and different values."""

import numpy as np

import pcbatch

COUNT = 2
WEIGHT = np.float32(3.0)


def helper(x):
    return COUNT * x


@pcbatch.autobatch
def weighted(x):
    return helper(x) * WEIGHT


class Least:
    def __init__(self, v):
        self.v = v
        if v < 0.0:
            self.v = 0.0
