"""`and` and `or` whose left side guards a division on the right."""

import numpy as np

import pcbatch

DTYPES = ("int32", "bool")


@pcbatch.autobatch
def short_circuit_division(a, b):
    hits = 0
    if b != 0 and a // b > 2:
        hits += 1
    if b == 0 or a % b == 0:
        hits += 10
    divides = b != 0 and not a % b != 0
    return hits, divides


def batch(rng, lanes):
    return rng.integers(-9, 9, lanes, dtype=np.int32), rng.integers(-2, 3, lanes, dtype=np.int32)


def twin(a, b):
    if b == 0:
        return 10, False
    divides = a in [b * k for k in range(-20, 20)]
    return int(np.floor(a / b) > 2) + 10 * divides, divides
