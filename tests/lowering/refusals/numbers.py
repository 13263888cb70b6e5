"""Numbers that do not meet: each refusal names the cast."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def shifted(n, x, flag):
    return n << x


@pcbatch.autobatch
def by_a_bool(n, x, flag):
    if flag:
        n = n > 1
    return n


BATCH = (np.array([1, 2], np.int32), np.array([1.0, 2.0]), np.array([True, False]))
ARGUMENTS = dict.fromkeys(["shifted", "by_a_bool"], BATCH)
