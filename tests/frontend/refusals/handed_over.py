import numpy as np

import pcbatch


class Point:
    def __init__(self, x):
        self.x = x


@pcbatch.autobatch
def moved(p, by):
    p.x += by
    return p.x


@pcbatch.autobatch
def an_object(x):
    p = Point(x)
    y = moved(p, 1.0)
    return p.x + y


@pcbatch.autobatch
def in_a_loop(x):
    p, y = Point(x), 0.0
    while y < 5:
        y += moved(p, 1.0)
    return y


@pcbatch.autobatch
def lost(a):
    a[0] = 1.0


X = (np.ones(2, np.float32),)
A = (np.ones([2, 3], np.float32),)
ARGUMENTS = {"an_object": X, "in_a_loop": X, "lost": A}
