"""Variables that are assigned behind a loop only if that makes a turn, which differs by lane or never happens."""

import numpy as np

import pcbatch

BATCH = (np.array([1, 2], np.int32),)
STEPS = 0


@pcbatch.autobatch
def no_turn(n):
    for i in range(n):
        total = i
    for step in range(STEPS):
        if step > n:
            break
    return total + step
