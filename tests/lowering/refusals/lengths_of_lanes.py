"""Lists of a length that differs by lane, over a bounded list and a range; ranges that are to be of one length."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def twice(x):
    return 2 * x


@pcbatch.autobatch
def strict(n):
    return sum(a * b for a, b in zip(range(n), range(n + 1), strict=True))


BATCH = (np.array([1, 2], np.int32),)
ARGUMENTS = dict.fromkeys(["strict"], BATCH)
