"""A condition with one answer for each element decides nothing."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def vector_condition(xs):
    steps = 0
    while xs > 1.0:
        xs = xs / 2.0
        steps += 1
    return steps


ARGUMENTS = {"vector_condition": (np.ones((2, 3), np.float32),)}
