"""Two functions that only ever call each other: no value ever comes back. Each is named at the call that gives none."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def forever(n):
    if n < 0:
        raise ValueError("negative")
    return never_returns(n) + 1


@pcbatch.autobatch
def never_returns(n):
    return 1 + forever(n + 1)


ARGUMENTS = {"never_returns": (np.array([1, 2], np.int32),)}
