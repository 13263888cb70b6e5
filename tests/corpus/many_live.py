"""Several variables live across each of two recursive calls, some across both, some across one."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def many_live(n, a, b):
    if n == 0:
        return a - b
    p = a + n
    q = b * 2 % 11
    first = many_live(n - 1, p, q)
    r = p * 3 % 7
    second = many_live(n - 2 if n > 1 else 0, q, r)
    return first * 2 + second - p + q * r


def batch(rng, lanes):
    return tuple(rng.integers(0, bound, lanes, dtype=np.int32) for bound in (5, 9, 9))
