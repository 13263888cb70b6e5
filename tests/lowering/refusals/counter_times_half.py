"""An int tensor does not become a float by meeting one; a `range` counter, a weak number, would."""

import numpy as np

import pcbatch

BATCH = (np.array([1, 2], np.int32),)


@pcbatch.autobatch
def counter_times_half(n):
    total = 0.0
    for i in range(3):
        total = total + i * 0.5
    return total + n * 0.5
