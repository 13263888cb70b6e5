"""`zip(.., strict=True)` of two lengths, which Python refuses; it is written out, as far as there are elements."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def strict_lengths(n):
    total = 0
    for i, (a, b) in enumerate(zip([n, 2, 3], (n, 2), strict=True)):
        total += i * a * b
    for a, b in zip(reversed([n, 2, 3]), reversed([]), strict=True):
        total += a * b
    return total


ARGUMENTS = {"strict_lengths": (np.array([1, 2], np.int32),)}
