"""Conditions of numbers, bools and lists together: only their truth counts, in `and`, `or`, `not`, `if`, `while`."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "bool", "float32")


@pcbatch.autobatch
def mixed_conditions(n, x, flags):
    steps = score = 0
    while n and steps < 4 and flags[steps]:
        n -= 1
        steps += 1
    if not (n and x > 0.5):
        score += 1
    if (n if x > 0.5 else flags[0]) or 10 // (n + 1) > 3:
        score += 2
    if x and (n or not flags[1]):
        score += 4
    left = bool(flags[2] and n - 1 and x) != (not (x < 0.5 or n and flags[3]))
    total = sum(i * 1.0 if (flags[i] if i else n) else 0.0 for i in range(4))
    assert n or x < 3.0
    return score, 8 if flags[0] and n else steps, left, x + total


def batch(rng, lanes):
    return (
        rng.integers(0, 6, lanes, dtype=np.int32),
        rng.integers(0, 3, lanes).astype(np.float32) / 2,
        rng.random((lanes, 4)) < 0.6,
    )


def twin(n, x, flags):
    steps = 0
    while n != 0 and steps < 4 and bool(flags[steps]):
        n, steps = n - 1, steps + 1
    score = int(not (n != 0 and x > 0.5))
    score += 2 * int((n != 0 if x > 0.5 else bool(flags[0])) or 10 // (n + 1) > 3)
    score += 4 * int(x != 0.0 and (n != 0 or not flags[1]))
    left = (flags[2] and n != 1 and x != 0.0) != (not (x < 0.5 or (n != 0 and flags[3])))
    total = sum(i for i in range(4) if (flags[i] if i else n != 0))
    return score, 8 if flags[0] and n != 0 else steps, bool(left), x + total
