"""Chained, augmented, annotated and nested unpacking assignments, and a swap."""

import numpy as np

import pcbatch

DTYPES = ("int32",) * 6


@pcbatch.autobatch
def assignment_forms(x):
    a = b = x + 1
    a += 3
    a -= b
    a *= 5
    b //= 2
    b %= 7
    c: int = 4
    c **= 2
    (d, e), f = (a, b), c
    d, e = e, d
    first, second = pair = (d + 1, e + 2)
    return a, b, c, d, e, f + first * second + pair[0]


def batch(rng, lanes):
    return (rng.integers(-20, 20, lanes, dtype=np.int32),)


def twin(x):
    b = int(np.floor((x + 1) / 2)) % 7
    return 15, b, 16, b, 15, 16 + 18 * (b + 1)
