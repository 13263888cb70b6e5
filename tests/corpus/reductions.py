"""`sum`, `any`, `all`, `min`, `max` and `len` of generators over arrays and ranges of lanes, with `if`, with `key`."""

import numpy as np

import pcbatch

DTYPES = (*["float32"] * 6, *["int32"] * 4, "bool", "bool")


@pcbatch.autobatch
def slowly(n):
    """The square of a number, by recursion."""
    return n if n <= 1 else n * n


def positive(v, scale):
    """Is part of the program, since it goes over an array."""
    return sum(x * scale for x in v if x > 0.0)


@pcbatch.autobatch
def reductions(v, n):
    total = sum(a * a for a in v) + positive(v, 2.0)
    best = max(a for a in v)
    worst = min((a for a in v if a > 5.0), default=-1.0)
    doubled = [2.0 * a for a in v]
    pairs = [(v[0], v[1]), (v[2], v[3])]
    nearest = min(pairs, key=lambda pair: abs(pair[0] - pair[1]))
    count = sum(1 for a in v if a > 0.0) + len([a for a in v if a < 1.0])
    squares = sum(slowly(i) for i in range(n) if i % 2 == 0)
    place = max(range(4), key=lambda i: v[i])
    steps = sum(i * j for i in range(n) for j in range(i))
    some = any(a > 1.5 for a in v)
    every = all(a < b for a in v[:2] for b in v[2:])
    return total, best, worst, doubled[3], *nearest, count, squares, place, steps, some, every


def batch(rng, lanes):
    return rng.normal(0.5, 1.0, (lanes, 4)).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)


def twin(v, n):
    total = sum(a * a for a in v) + sum(2.0 * a for a in v if a > 0.0)
    worst = min((a for a in v if a > 5.0), default=-1.0)
    nearest = min([(v[0], v[1]), (v[2], v[3])], key=lambda pair: abs(pair[0] - pair[1]))
    count = sum(1 for a in v if a > 0.0) + len([a for a in v if a < 1.0])
    squares = sum(i * i for i in range(n) if i % 2 == 0)
    place = max(range(4), key=lambda i: v[i])
    steps = sum(i * j for i in range(n) for j in range(i))
    some, every = any(a > 1.5 for a in v), all(a < b for a in v[:2] for b in v[2:])
    return total, max(v), worst, 2.0 * v[3], *nearest, count, squares, place, steps, some, every
