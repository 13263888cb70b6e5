"""Variables that are assigned behind a loop only if that makes a turn, which differs by lane or never happens."""

import numpy as np

import pcbatch

STEPS = 0


@pcbatch.autobatch
def by_lane(n):
    for i in range(n):
        total = i
    return total


@pcbatch.autobatch
def none(n):
    for step in range(STEPS):
        if step > n:
            break
    return step + n


BATCH = (np.array([1, 2], np.int32),)
ARGUMENTS = dict.fromkeys(["by_lane", "none"], BATCH)
