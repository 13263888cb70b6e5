"""Ints of two dtypes: places from `np.argmax` and `np.arange`, int64, beside arguments and Python's numbers, int32."""

import numpy as np

import pcbatch

DTYPES = ("int64", "int32", "int64", "int64", "float32")


def batch(rng, lanes):
    return rng.integers(0, 6, (lanes, 4)).astype(np.int32), rng.normal(size=(lanes, 6)).astype(np.float32)


@pcbatch.autobatch
def root(parent, i):
    while parent[i] != i:
        i = parent[i]
    return i


@pcbatch.autobatch
def mixed_ints(links, x):
    parent = np.arange(6)
    for k in range(3):
        parent[root(parent, links[k])] = root(parent, links[k + 1])
    best = np.zeros(2, np.int32)
    best[0] = np.argmax(x)
    best[1] = links[0] + np.argmin(x)
    place = links[1]
    if x[0] > 0.0:
        place = np.argmax(x)
    low = min(links[2], np.argmax(x))
    values = np.zeros(3)
    values[1] = x[place]
    values[links[0] % 3] = links[0]
    return root(parent, links[0]), best, place, low + links[3], np.float32(values[1])


def twin(links, x):
    parent = list(range(6))

    def up(i):
        return i if parent[i] == i else up(parent[i])

    for a, b in zip(links, links[1:], strict=False):
        parent[up(a)] = up(b)
    best = np.array([np.argmax(x), links[0] + np.argmin(x)])
    place = np.argmax(x) if x[0] > 0 else links[1]
    values = [0.0, x[place], 0.0]
    values[links[0] % 3] = links[0]
    return up(links[0]), best, place, min(links[2], np.argmax(x)) + links[3], values[1]
