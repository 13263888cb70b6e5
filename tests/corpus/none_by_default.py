"""Defaults of None that recursion replaces: a search between bounds, a walk with the best so far, both in one cycle."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "int32")


def batch(rng, lanes):
    xs = np.sort(rng.normal(size=(lanes, 7)), axis=1).astype(np.float32)
    return xs, rng.normal(size=lanes).astype(np.float32)


@pcbatch.autobatch
def search(xs, x, low=0, high=None):
    if high is None:
        high = len(xs)
    if low >= high:
        return low
    middle = (low + high) // 2
    if xs[middle] < x:
        return search(xs, x, middle + 1, high)
    return search(xs, x, low, middle)


@pcbatch.autobatch
def closest(xs, x, k=0, best=None):
    if k == len(xs):
        return best if best is not None else x
    if best is None or abs(xs[k] - x) < abs(best - x):
        best = xs[k]
    return closest(xs, x, k + 1, best)


@pcbatch.autobatch
def none_by_default(xs, x, limit=None):
    steps = 0
    while steps < 4 and (limit is None or steps < limit):
        steps += 1
    if limit is not None:
        return search(xs, x), closest(xs, x), steps
    found = none_by_default(xs, x, limit=2)
    return found[0], found[1], steps + found[2]


def twin(xs, x):
    return len([each for each in xs if each < x]), min(xs, key=lambda each: abs(each - x)), 6
