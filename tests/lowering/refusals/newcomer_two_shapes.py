"""A newcomer's third mistake: a tensor of two shapes. In Python `total` would grow by itself at the first turn."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def newcomer_two_shapes(n, xs):
    total = 0.0
    for _ in range(n):
        total = total + xs
    return total


ARGUMENTS = {"newcomer_two_shapes": (np.array([3, 2], np.int32), np.ones((2, 4), np.float32))}
