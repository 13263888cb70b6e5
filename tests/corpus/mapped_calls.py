"""`pcbatch.map`: a function for each element of arrays, also one that recurses, gives a structure, or is a lambda."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "float32", "int32")


@pcbatch.autobatch
def halvings(n, x):
    if n <= 1:
        return 0, x
    count, y = halvings(n // 2, x * 2)
    return count + 1, y


@pcbatch.autobatch
def mapped_calls(ns, xs, n):
    counts, ys = pcbatch.map(halvings, ns, xs)
    squares = pcbatch.map(lambda k: k * k + n, ns)
    deepest = pcbatch.map(lambda k: halvings(k, 0.5)[0], [n, n + 9])
    return counts, squares, ys, deepest


def batch(rng, lanes):
    ns = rng.integers(0, 40, (lanes, 3), dtype=np.int32)
    return ns, rng.normal(size=(lanes, 3)).astype(np.float32), rng.integers(0, 40, lanes, dtype=np.int32)


def twin(ns, xs, n):
    def count(n):
        return 0 if n <= 1 else 1 + count(n // 2)

    counts = [count(int(k)) for k in ns]
    ys = [x * 2**c for x, c in zip(xs, counts, strict=True)]
    return tuple(map(np.array, (counts, [k * k + n for k in ns], ys, [count(n), count(n + 9)])))
