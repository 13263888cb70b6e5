"""An int that a loop makes a float is a float from the start, in every turn and in the condition."""

import numpy as np

import pcbatch

BATCH = (np.array([3, 4], np.int32), np.array([0.5, 1.0], np.float32))


@pcbatch.autobatch
def widening(n, step):
    total = 0
    for i in range(n):
        half = i * 0.5
        total = total + half
        if total > 2:
            total = total - step
    return total
