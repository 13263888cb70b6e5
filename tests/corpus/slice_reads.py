"""Slices of fixed length that start where the lane says, beside indices, steps, whole axes, None and an ellipsis."""

import numpy as np

import pcbatch

DTYPES = ("float32",) * 7
K = 2


@pcbatch.autobatch
def slice_reads(a, m, i, j):
    window = a[i : i + 3]
    back = a[i + 2 : i - 1 : -1]
    column = m[j : j + 2, i]
    total = 0.0
    for p in range(3):
        total = total + sum(a[p : p + K])
    return window, back, column, m[:, i : i + K], m[None, j, ..., ::2], a[2 * i - i : 2 * i - i + 4 : 2], total


def batch(rng, lanes):
    starts = rng.integers(1, 4, lanes, dtype=np.int32), rng.integers(0, 2, lanes, dtype=np.int32)
    vectors, matrices = rng.normal(size=(lanes, 7)), rng.normal(size=(lanes, 3, 5))
    return vectors.astype(np.float32), matrices.astype(np.float32), *starts


def twin(a, m, i, j):
    return (
        np.roll(a, -i)[:3],
        np.flip(np.roll(a, -i)[:3]),
        np.roll(m, -j, axis=0)[:2, i],
        np.roll(m, -i, axis=1)[:, :2],
        m[j].reshape(1, 5)[:, [0, 2, 4]],
        np.array([a[i], a[i + 2]]),
        float(a[0] + 2 * a[1] + 2 * a[2] + a[3]),
    )
