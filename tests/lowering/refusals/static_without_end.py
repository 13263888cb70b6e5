"""A recursion in which a static argument changes is compiled for each value: there must not be too many."""

import numpy as np

import pcbatch


@pcbatch.autobatch(static_argnames="level")
def deeper(n, level):
    if n == 0:
        return level
    return deeper(n - 1, level + 1)


@pcbatch.autobatch
def static_without_end(n):
    return deeper(n, 0)


ARGUMENTS = {"static_without_end": (np.array([1, 2], np.int32),)}
