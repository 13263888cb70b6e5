"""Functions inside a function that call ones defined further down; a helper that asks for the length of an array."""

import numpy as np

import pcbatch

DTYPES = ("bool", "float32", "float32")


def middle(values):
    half = len(values) // 2
    return (values[half - 1] + values[half]) / 2.0


@pcbatch.autobatch
def forward_functions(n, v):
    def even(k):
        return True if k == 0 else odd(k - 1)

    def odd(k):
        return False if k == 0 else even(k - 1)

    def total(i):
        if i >= len(v):
            return 0.0
        return scale * v[i] + skipped(i + 1)

    def skipped(i):
        return total(i + 1) if i < n else total(i)

    scale = 1.0
    plainly = total(0)
    scale = 2.0
    return even(n), plainly + total(0), middle(v)


def batch(rng, lanes):
    return rng.integers(0, 9, lanes, dtype=np.int32), rng.random((lanes, 6)).astype(np.float32)


def twin(n, v):
    total, i = 0.0, 0
    while i < len(v):
        total += v[i]
        i += 2 if i + 1 < n else 1
    return n % 2 == 0, 3.0 * total, (v[2] + v[3]) / 2.0
