"""Literals give way where two paths meet: to each other's kind, or to the dtype of a tensor."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, -1.0], np.float64), np.array([3, 4], np.int64))


@pcbatch.autobatch
def weak_joins(x, n):
    number = 1
    if n > 3:
        number = 0.5
    scaled = 0
    if n > 3:
        scaled = x
    count = n if x > 0.0 else 7
    return number, scaled, count
