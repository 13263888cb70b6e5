"""Loops that surely make a turn assign what is read behind them; they may be left in the first turn."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "int32", "int32", "float32")
STEPS = 3


@pcbatch.autobatch
def first_turns(x, v):
    for i in range(5):
        if i > x:
            break
    for a in v:
        last = a * 2.0
        if last > x:
            break
    for step in reversed(range(1, STEPS)):
        for j, b in enumerate(v):
            if b > 0.25 * (j + 1):
                continue
            a -= b * step
        if a < 0.0:
            break
    size = len(v)
    for k in range(size - 1, -1, -1):
        if v[k] > 0.25:
            break
    return i, last + b, step, j + k, a


def batch(rng, lanes):
    return rng.integers(0, 6, lanes).astype(np.float32) / 2, rng.random((lanes, 4)).astype(np.float32)


def twin(x, v):
    i = next((i for i in range(5) if i > x), 4)
    a = next((float(a) for a in v if a * 2 > x), float(v[-1]))
    last, step = 2 * a, 2
    for step in (2, 1):
        a -= sum(float(b) * step for j, b in enumerate(v) if b <= 0.25 * (j + 1))
        if a < 0.0:
            break
    k = next((k for k in (3, 2, 1, 0) if v[k] > 0.25), 0)
    return i, last + float(v[-1]), step, 3 + k, a
