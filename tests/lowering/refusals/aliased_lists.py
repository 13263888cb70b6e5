"""What changes a list or a dict in place, `xs += ys`, `xs *= 2`, `d |= e`, beside another name of it that is read."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32),)


@pcbatch.autobatch
def grown(xs, ys):
    xs += ys
    return xs[0]


@pcbatch.autobatch
def aliased_lists(x):
    xs, ys = [x], [2.0 * x]
    other = xs
    xs += ys
    rows = [[x]]
    rows *= 2
    rows[0].append(x)
    first = {"a": x}
    second = first
    first |= {"b": x}
    zs = [x]
    total = grown(zs, [x])
    return other, rows, second, total, zs
