"""`and` and `or` of a number and a bool whose value is kept; where only their truth counts they are fine."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def mixed_choice(n, x):
    is_left = n - 1 and x > 1.0
    if n and x > 1.0:
        n = 0
    return is_left, x > 1.0 or n


ARGUMENTS = {"mixed_choice": (np.array([1, 2], np.int32), np.array([1.0, 2.0], np.float32))}
