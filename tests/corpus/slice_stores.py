"""Stores into slices: whole rows and columns, windows at the lane's place, steps, scalars and updates in place."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32", "int32")


@pcbatch.autobatch
def slice_stores(a, m, n, i, j):
    a[i : i + 3] = a[i + 1 : i + 4] * 2.0
    a[-2:] += 1
    m[:, j] = a[:2]
    m[i, :] = 7
    m[i : i + 1, 0:2] -= m[0, 1:]
    for p in range(3):
        n[p : p + 2] += i
    n[...] = n + n[0]
    n[::2] *= 3
    return a, m, n


def batch(rng, lanes):
    floats = [rng.normal(size=(lanes, *shape)).astype(np.float32) for shape in ((6,), (2, 3))]
    ints = rng.integers(-9, 9, (lanes, 4), dtype=np.int32)
    return *floats, ints, rng.integers(0, 2, lanes, dtype=np.int32), rng.integers(0, 3, lanes, dtype=np.int32)


def twin(a, m, n, i, j):
    a[i : i + 3] = 2 * np.array([a[i + 1], a[i + 2], a[i + 3]])
    a[4], a[5] = a[4] + 1, a[5] + 1
    m[0, j], m[1, j] = a[0], a[1]
    m[i] = np.full(3, 7)
    row = m[0, 1:].copy()
    m[i, 0], m[i, 1] = m[i, 0] - row[0], m[i, 1] - row[1]
    n = n + np.array([1, 2, 2, 1]) * i
    n = n + n[0]
    return a, m, np.array([3, 1, 3, 1]) * n
