"""`in` and `not in`: tuples, lists, ranges, lane arrays, arrays of the module; `is None` of what is static."""

import numpy as np

import pcbatch

DTYPES = ("int32",)
PRIMES = np.array([2, 3, 5, 7, 11], np.int32)
OFFSET = None


@pcbatch.autobatch
def membership(n, values, x):
    found = 0
    if n in (1, 2, 7) or x not in [0.5, 1]:
        found += 1
    if 0 <= n in range(1, 20, 3):
        found += 10
    if n not in PRIMES and n in values:
        found += 100
    while n not in values and n < 12:
        n += 1
        found += 1000
    if n in (values[0], 3 * values[1]):
        found += 100000
    return found if OFFSET is None and x is not None else found + OFFSET


def batch(rng, lanes):
    values = rng.integers(0, 12, (lanes, 3), dtype=np.int32)
    return rng.integers(-2, 12, lanes, dtype=np.int32), values, rng.integers(0, 4, lanes).astype(np.float32) / 2


def twin(n, values, x):
    values = values.tolist()
    found = int(n in {1, 2, 7} or x not in {0.5, 1.0})
    found += 10 * (n > 0 and n % 3 == 1 and n < 20)
    found += 100 * (n not in {2, 3, 5, 7, 11} and n in values)
    while n not in values and n < 12:
        n, found = n + 1, found + 1000
    return found + 100000 * (n == values[0] or n == 3 * values[1])
