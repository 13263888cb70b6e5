"""Elements by a mask, whose number differs by lane, and functions that know nothing of tensors."""

import math

import numpy as np

import pcbatch


@pcbatch.autobatch
def masked(a, i, j):
    return a[a > 0.5].reshape(2, 1)


@pcbatch.autobatch
def other_shape(a, i, j):
    r = a
    if i > 5:
        r = a[[0, 2]]
    return r


@pcbatch.autobatch
def next_number(a, i, j):
    return a * math.nextafter(i, j)


@pcbatch.autobatch
def modular_power(a, i, j):
    return a * pow(a, j, 7)


@pcbatch.autobatch
def root_of_an_array(a, i, j):
    return a * math.sqrt(a)


@pcbatch.autobatch
def list_or_array(a, i, j):
    r = a
    if i > 2:
        r = sorted(a)
    return r


BATCH = (np.ones((2, 4), np.float32), np.array([1, 2], np.int32), np.array([3, 2], np.int32))
ARGUMENTS = dict.fromkeys(
    [
        "masked",
        "other_shape",
        "next_number",
        "modular_power",
        "root_of_an_array",
        "list_or_array",
    ],
    BATCH,
)
