"""`enumerate`, `zip` (the shortest ends it), `reversed`, unpacked rows, `reversed(range(..))`, an array of no rows."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "int32", "int32")


@pcbatch.autobatch
def loop_forms(rows, values, n):
    total = 0
    for i, (a, b) in enumerate(rows, n):
        total = total * 2 + a * i - b
    for x, (y, z) in zip(values, reversed(rows), strict=False):
        total += x * y + z
    for x, row in zip(rows, rows, strict=True):
        total += x[0] * row[1]
    last = -1
    for k in reversed(range(1, n)):
        last = last * 3 + k
    for k in reversed(range(n)):
        last -= k
    count = 0
    for row in tf.zeros([0, 2], tf.int32):
        count += row[0]
    for value in (twice := values * 2):
        count += value
    return total, last, count + twice[0]


def batch(rng, lanes):
    return (
        rng.integers(-5, 9, (lanes, 3, 2), dtype=np.int32),
        rng.integers(-5, 9, (lanes, 2), dtype=np.int32),
        rng.integers(-1, 5, lanes, dtype=np.int32),
    )


def twin(rows, values, n):
    total = 0
    for i in range(3):
        total = 2 * total + int(rows[i, 0]) * (i + n) - int(rows[i, 1])
    for i in range(2):
        total += int(values[i]) * int(rows[2 - i, 0]) + int(rows[2 - i, 1])
    total += int(np.dot(rows[:, 0], rows[:, 1]))
    last = -1
    for k in range(n - 1, 0, -1):
        last = 3 * last + k
    last -= sum(range(n))
    return total, last, 2 * int(values.sum()) + 2 * int(values[0])
