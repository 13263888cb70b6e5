"""Slices and masks whose length differs by lane, and functions that know nothing of tensors."""

import math

import numpy as np

import pcbatch

BATCH = (np.ones((2, 4), np.float32), np.array([1, 2], np.int32), np.array([3, 2], np.int32))


@pcbatch.autobatch
def lane_slices(a, i, j):
    r = a
    if i > 9:
        r = a[:i]
    if i > 8:
        r = a[i:j]
    if i > 7:
        r = a[i : i + j]
    if i > 6:
        r = a[a > 0.5]
    if i > 5:
        r = a[[0, 2]]
    if i > 4:
        r = a * math.gcd(i, j)
    if i > 3:
        r = np.kron(a, a)
    if i > 2:
        r = sorted(a)
    if i > 1:
        r = a * pow(i, j, 7)
    if i > 0:
        r = a * math.sqrt(a)
    return r
