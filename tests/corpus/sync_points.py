"""Lanes wait for the others: in a loop, in one arm, in a recursion, at the end of a loop and twice in a row."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def descend(n, level):
    pcbatch.sync()
    if n <= 0:
        return level
    left = descend(n - 2, level + 1)
    pcbatch.sync()
    return left + descend(n - 3, level)


@pcbatch.autobatch
def sync_points(n, m):
    total = 0
    for i in range(n):
        k = m
        while k > i:
            k = k - 3
            if k % 2 == 0:
                pcbatch.sync()
        pcbatch.sync()
        pcbatch.sync()
        total = total * 3 % 1009 + k
        pcbatch.sync()
    return total, descend(m % 7, n)


def batch(rng, lanes):
    return tuple(rng.integers(0, bound, lanes, dtype=np.int32) for bound in (6, 20))


def twin(n, m):
    def below(n, level):
        return level if n <= 0 else below(n - 2, level + 1) + below(n - 3, level)

    total = 0
    for i in range(n):
        k = m - 3 * max(0, -(-(m - i) // 3))
        total = total * 3 % 1009 + k
    return total, below(m % 7, n)
