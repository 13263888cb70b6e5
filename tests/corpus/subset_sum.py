"""Recursive calls as the operands of `or`: the second is made only where the first is false."""

import numpy as np

import pcbatch

DTYPES = ("bool",)


@pcbatch.autobatch
def subset_sum(values, target, i=0):
    if target == 0:
        return True
    if i == len(values):
        return False
    return subset_sum(values, target - values[i], i + 1) or subset_sum(values, target, i + 1)


def batch(rng, lanes):
    return rng.integers(1, 9, (lanes, 4), dtype=np.int32), rng.integers(0, 20, lanes, dtype=np.int32)


def twin(values, target):
    sums = {0}
    for value in values.tolist():
        sums |= {total + value for total in sums}
    return target in sums
