"""Functions inside of functions."""

import numpy as np

import pcbatch


class P:
    def __init__(self, x):
        self.x = x


@pcbatch.autobatch
def nonl(x):
    t = 0.0

    def add(v):
        nonlocal t
        t = t + v

    add(x)
    add(2.0)
    return t


@pcbatch.autobatch
def novalue(x):
    a = np.zeros(3, np.float32)

    def put(k, v):
        a[k] = v
        if v > 3:
            return
        a[0] = 1.0

    put(1, x)
    put(2, 5.0)
    return a


@pcbatch.autobatch
def dele(x):
    y = x + 1
    del y
    p = P(x)
    p.z = 1.0
    del p.z
    return p.x


@pcbatch.autobatch
def sets(x):
    s = {1, 2}
    return x + len(s) if 1 in s else x


@pcbatch.autobatch
def assigned_later(x):
    def put(v):
        nonlocal total
        total = v

    put(x)
    total = total + 1.0  # noqa: F821
    return total


@pcbatch.autobatch
def walrus(x):
    a = [h for g in (1, 2) if (h := g)]
    b = (lambda y: (z := y) + z)(x)
    return b + h + a[0]


@pcbatch.autobatch
def called_if_it_can_be(x):
    parts = [abs, lambda y: y * 2.0, P(x), P, x]
    return sum(part(x) for part in parts if callable(part) and part is not P), sum(map(callable, parts))


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(["nonl", "novalue", "dele", "sets", "assigned_later", "walrus", "called_if_it_can_be"], X)
