"""Lists of a length that differs by lane, over a bounded list and a range; ranges that are to be of one length."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def twice(x):
    return 2 * x


@pcbatch.autobatch
def strict(n):
    return sum(a * b for a, b in zip(range(n), range(n + 1), strict=True))


@pcbatch.autobatch
def of_a_bounded_list(n):
    kept = pcbatch.bounded((), tf.int32, 4)
    kept.append(n)
    return [twice(each) for each in kept]


@pcbatch.autobatch
def of_a_range(n):
    return [twice(i) for i in range(n)]


BATCH = (np.array([1, 2], np.int32),)
ARGUMENTS = dict.fromkeys(["strict", "of_a_bounded_list", "of_a_range"], BATCH)
