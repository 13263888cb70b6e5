"""Lists of a length that differs by lane, over a bounded list and a range; ranges that are to be of one length."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1, 2], np.int32),)


@pcbatch.autobatch
def twice(x):
    return 2 * x


@pcbatch.autobatch
def lengths_of_lanes(n):
    kept = pcbatch.bounded((), tf.int32, 4)
    kept.append(n)
    total = sum(a * b for a, b in zip(range(n), range(n + 1), strict=True))
    if n > 3:
        found = [twice(each) for each in kept]
    else:
        found = [twice(i) for i in range(n)]
    return total, found
