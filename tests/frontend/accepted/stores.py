"""Stores into parts, deletions and what stands in `with`."""

import numpy as np
import tensorflow as tf

import pcbatch


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


@pcbatch.autobatch
def d1(x):
    a, n = Point(x, x), x
    (a, n)[0].x = 1.0
    return a.x


@pcbatch.autobatch
def d2(x):
    a = [x, x]
    a[0:1][0] = x + 5
    return a[0]


@pcbatch.autobatch
def d3(x):
    a = np.stack([x, x])
    a[0:1][0] = x + 5
    return a[0]


@pcbatch.autobatch
def d4(x):
    a = [x, x]
    p = Point(x, x)
    p.x, *others = a
    return p.x + others[0]


@pcbatch.autobatch
def d5(x):
    points = [x, x + 1]
    y = [points.pop() for _ in (1, 2)]
    return y[0] - y[1] + len(points)


@pcbatch.autobatch
def d6(x):
    a = [x, x, x]
    a[0:2] = [x + 1]
    return a[0] + len(a)


@pcbatch.autobatch
def e1(x):
    return 1.0 if x is True else 2.0


@pcbatch.autobatch
def e3(x):
    return 1.0 if x in [x, x] else 2.0


@pcbatch.autobatch
def e4(x):
    return 1.0 if x is not None else 2.0


@pcbatch.autobatch
def w2(x):
    with tf.name_scope("a"):
        for k in range(3):
            x = x + k
    return x


@pcbatch.autobatch
def w3(x):
    a = [x, x]
    with tf.name_scope("a"):
        a[0] = x + 1
    return a[0]


@pcbatch.autobatch
def w4(x):
    a = np.stack([x, x])
    with tf.name_scope("a"):
        a[0] = x + 1
    return a[0]


@pcbatch.autobatch
def w7(x):
    xs = [0, 1]
    with tf.name_scope("a") as xs[0]:
        y = x
    return y


@pcbatch.autobatch
def w9(x):
    with tf.name_scope("a"):
        y = x if x > 2 else tf.sin(x)
    return y


@pcbatch.autobatch
def w14(x):
    with tf.name_scope("s"):
        y = x
        del y
        x = x + 1
    return x


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(["d1", "d2", "d3", "d4", "d5", "d6", "e1", "e3", "e4", "w2", "w3", "w4", "w7", "w9", "w14"], X)
