"""Functions whose author says what a row of them costs, over and under the decorator: lanes gather there."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
@pcbatch.cost(1e6)
def polish(x):
    return x * 5 % 97


@pcbatch.cost(3e6)
@pcbatch.autobatch
def grind(x, n):
    if n > 0:
        return grind(x + n, n - 1)
    return x * x % 89


@pcbatch.autobatch
def cost_hints(n, x):
    for i in range(n):
        if x % 3 == 0:
            x = polish(x + i)
        else:
            x = grind(x, i % 3)
        while x > 40:
            x = x - 7
    return x


def batch(rng, lanes):
    return tuple(rng.integers(0, bound, lanes, dtype=np.int32) for bound in (9, 50))


def twin(n, x):
    for i in range(n):
        if x % 3 == 0:
            x = (x + i) * 5 % 97
        else:
            x = (x + sum(range(i % 3 + 1))) ** 2 % 89
        x -= 7 * max(0, -(-(x - 40) // 7))
    return x
