"""A newcomer's second mistake: a variable that only one path binds."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def newcomer_one_path(x):
    if x > 1.0:
        root = x**0.5
    return root + 1.0


ARGUMENTS = {"newcomer_one_path": (np.array([1.0, 2.0], np.float32),)}
