import numpy as np

import pcbatch

TABLE = [1, 2]


@pcbatch.autobatch
def inner(a, n):
    b = a
    a = [n, n]
    return b if n > 0 else TABLE


@pcbatch.autobatch
def own(a, n):
    a[0] = n
    return a if n > 0 else own(a, n - 1)


@pcbatch.autobatch
def deep(pair, n):
    return (n, pair[1]) if n > 0 else deep(pair, n + 1)


@pcbatch.autobatch
def f(xs, n):
    table = TABLE
    table[0] = n
    given = inner(xs, n)
    given[0] = n
    mine = own(xs, n)
    xs[1] = mine[0]
    mine[0] = xs[0]
    _, part = deep((n, mine), n)
    mine[0] = part[0]
    flat = np.reshape(part, [-1])
    part[0] = 1
    doubled = np.multiply(xs, 2)
    xs[0] = n
    return xs, mine, part, flat, doubled
