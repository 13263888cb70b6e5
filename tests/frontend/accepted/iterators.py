"""Generators and iterators, which are gone over once."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def g2(x):
    xs = [x, x]
    gen = (v * 2 for v in xs)
    xs = [9.0]
    return sum(gen)


@pcbatch.autobatch
def g3(x):
    xs = [x, x]
    gen = (v * 2 for v in xs)
    xs.append(9.0)
    return sum(gen)


@pcbatch.autobatch
def g5(x):
    a = np.stack([x, x])
    gen = (v * 2 for v in a)
    a[0] = 9.0
    return sum(gen)


@pcbatch.autobatch
def g9(x):
    for k in range(3):
        gen = (v for v in [x, k])
        x = x + max(gen)
    return x


X = [(np.float32(1.0),), (np.float32(4.0),)]
EXAMPLES = dict.fromkeys(["g2", "g3", "g5", "g9"], X)
