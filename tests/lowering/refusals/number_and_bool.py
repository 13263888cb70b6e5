"""A number on one path, a truth value on the other: both assignments are shown."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def number_and_bool(x):
    if x > 0.0:
        sign = 1
    else:
        sign = False
    return sign


ARGUMENTS = {"number_and_bool": (np.array([1.0, -1.0], np.float32),)}
