"""Numbers that do not meet: each refusal names the cast."""

import numpy as np

import pcbatch

BATCH = (np.array([1, 2], np.int32), np.array([1.0, 2.0]), np.array([True, False]))


@pcbatch.autobatch
def numbers(n, x, flag):
    if flag:
        n = n * 0.5
    elif n > 1:
        n = n + x
    elif n > 0:
        n = n // 1.5
    elif n < -1:
        n = n << x
    elif n < -2:
        n = n * np.float64(0.5)
    elif x > 1.0:
        n = flag + 1
    elif x > 0.0:
        n = n * flag
    return n
