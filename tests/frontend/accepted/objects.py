"""Objects handed to batched functions, and given back by them."""

import copy

import numpy as np

import pcbatch


class Point:
    def __init__(self, x):
        self.x = x
        self.n = 0


@pcbatch.autobatch
def moved(p, by):
    p.x += by
    return p.x


@pcbatch.autobatch
def returned(p, by):
    p.x += by
    return p


@pcbatch.autobatch
def same(p):
    return p


@pcbatch.autobatch
def pair(p, q):
    return q, p


@pcbatch.autobatch
def deep(p, k):
    if k < 1:
        return p.x
    p.x += 1
    return deep(p, k - 1)


@pcbatch.autobatch
def a2(x):
    p = Point(x)
    return moved(p, 1.0)


@pcbatch.autobatch
def a3(x):
    p = Point(x)
    p = returned(p, 1.0)
    p = returned(p, 2.0)
    return p.x


@pcbatch.autobatch
def a4(x):
    p = Point(x)
    r = same(p)
    r.x = 3.0
    return p.x


@pcbatch.autobatch
def a5(x):
    p = Point(x)
    q = Point(2.0)
    a, b = pair(p, q)
    a.x = 7.0
    return p.x + q.x * 10


@pcbatch.autobatch
def a6(x):
    p = Point(x)
    return moved(copy.copy(p), 1.0) + p.x


@pcbatch.autobatch
def a8(x):
    p = Point(x)
    for k in range(3):
        p = returned(p, 1.0)
    return p.x


@pcbatch.autobatch
def a9(x):
    p = Point(x)
    return deep(p, 3)


@pcbatch.autobatch
def a10(x):
    p = Point(x)
    if x > 2:
        y = moved(p, 1.0)
    else:
        y = p.x
    return y


@pcbatch.autobatch
def a11(x):
    xs = [x, x]
    ys = same(xs)
    ys.append(x)
    return float(len(xs))


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(["a2", "a3", "a4", "a5", "a6", "a8", "a9", "a10", "a11"], X)
