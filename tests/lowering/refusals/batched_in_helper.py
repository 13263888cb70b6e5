"""A batched function called by a helper would be a batch inside each lane; the compiler must see the call."""

import numpy as np

import pcbatch

BATCH = (np.array([12, 18], np.int32),)


@pcbatch.autobatch
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def reduced(n):
    return n // gcd(n, 6)


@pcbatch.autobatch
def batched_in_helper(n):
    n = n + 6
    return reduced(n)
