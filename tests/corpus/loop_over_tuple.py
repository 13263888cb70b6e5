"""`for` over tuples: a structured argument, one written out, pairs; elements of several types become one."""

import numpy as np

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def loop_over_tuple(parts, x):
    total = 0.0
    for part in parts:
        if part > x:
            break
        total += part * x
    for step in (1, 0.5, -0.25):
        total += step
    for scale, shift in ((2.0, x), (3, total)):
        x = x * scale + shift
    for part in [x, *parts]:
        total -= part
    return total


def batch(rng, lanes):
    values = rng.normal(size=(4, lanes)).astype(np.float32)
    return tuple(values[:3]), values[3] + 1


def twin(parts, x):
    total = 0.0
    for part in parts:
        if part > x:
            break
        total += part * x
    total += 1.25
    x = 2 * x + x
    x = 3 * x + total
    return total - x - sum(parts)
