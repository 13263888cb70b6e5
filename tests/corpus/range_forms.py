"""Ranges: one, two and three bounds, a negative step, an empty one; inside `zip`, `enumerate` and `reversed`."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "int32", "int32", "int32", "float32", "float32", "float32", "int32")


@pcbatch.autobatch
def range_forms(n, step, values):
    total = 0
    for i in range(3):
        total += i * n
    for i in range(2, 4):
        total += i
    for i in range(7, 0, -3):
        total = 2 * total + i
    for _ in range(0):
        total = -1
    for _ in range(n):
        pass
    weighted, places, ended = 0.0, 0, 0
    for i, value in zip(range(n), values, strict=False):  # as long as the shorter one, for each lane
        if value > 2.0:
            break
        n += 1  # Python's range does not see it
        weighted += i * value
    else:
        ended = 1
    for place, (i, j) in enumerate(zip(range(n, -4, step), range(9), strict=False), 1):
        places = 3 * places + place * i + j
    for i in reversed(range(1, n, 2)):
        places += i
    parts = []
    for value, i in zip(reversed(values), reversed(range(3)), strict=False):  # written out; ends of unequal lengths
        parts.append(value * (i + 1))
    return total, weighted, places, ended, n, parts, i


def batch(rng, lanes):
    values = rng.normal(0.5, 1.0, (lanes, 4)).astype(np.float32)
    return rng.integers(0, 6, lanes, dtype=np.int32), rng.choice([-3, -1, 2, 0], lanes).astype(np.int32), values


def twin(n, step, values):
    total = 8 * (3 * n + 5) + 4 * 7 + 2 * 4 + 1
    looked_at = min(n, 4)
    over = np.flatnonzero(values[:looked_at] > 2.0)
    turns = int(over[0]) if over.size else looked_at
    weighted = float(np.arange(turns) @ values[:turns])
    n += turns
    numbers = [*range(n, -4, step)][:9]
    places = 0
    for place, i in enumerate(numbers):
        places = 3 * places + (place + 1) * i + place
    places += sum(k for k in range(n) if k % 2)
    parts = [float(values[3 - k] * (3 - k)) for k in range(3)]
    return total, weighted, places, int(not over.size), n, parts, 0


def status(n, step, values):
    return "OK" if step else "RAISED"


def message(n, step, values):
    return "range() arg 3 must not be zero"
