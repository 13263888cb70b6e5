"""Helpers that cannot be read, and give back what they are given."""

import numpy as np

import pcbatch


class P:
    def __init__(self, x):
        self.x = x


def back(xs):
    try:
        return xs
    except ValueError:
        return None


@pcbatch.autobatch
def giveback(x):
    xs = [x, x + 1]
    ys = back(xs)
    ys[0] = 7.0
    return xs[0]


@pcbatch.autobatch
def gbarr(x):
    xs = np.stack([x, x + 1])
    ys = back(xs)
    ys[0] = 7.0
    return xs[0]


@pcbatch.autobatch
def gbobj(x):
    p = P(x)
    q = back(p)
    q.x = 7.0
    return p.x


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(["giveback", "gbarr", "gbobj"], X)
