"""A helper gives one object at two places, and one of them changes; a list of objects times a number."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32),)


def pair(x):
    row = [x]
    return [row, row]


@pcbatch.autobatch
def twice_in_a_helper(x, n=2):
    rows = pair(x)
    rows[0].append(x)
    if x > 1.0:
        one = [[x]]
        many = one * n
        many[0].append(x)
        return many[1][0]
    return rows[1][0]
