"""What changes a list or a dict in place, `xs += ys`, `xs *= 2`, `d |= e`, beside another name of it that is read."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def grown(xs, ys):
    xs += ys
    return xs[0]


@pcbatch.autobatch
def extended(x):
    zs = [x]
    total = grown(zs, [x])
    return total + zs[0]


ARGUMENTS = {"extended": (np.array([1.0, 2.0], np.float32),)}
