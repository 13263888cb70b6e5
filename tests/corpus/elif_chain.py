"""if/elif/else with a return in one arm and assignments in the others; negative numbers."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def elif_chain(x):
    if x < -10:
        return -2
    elif x < 0:
        grade = -1
    elif x == 0:
        grade = 0
    elif x <= 10:
        grade = 1
    else:
        grade = 2
    return grade * 10


def batch(rng, lanes):
    return (rng.integers(-20, 20, lanes, dtype=np.int32),)


def twin(x):
    thresholds = [(-11, -2), (-1, -10), (0, 0), (10, 10)]
    return next((value for limit, value in thresholds if x <= limit), 20)
