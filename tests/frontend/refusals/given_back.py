import numpy as np

import pcbatch

TABLE = [1, 2]


@pcbatch.autobatch
def inner(a, n):
    return a if n > 0 else TABLE


@pcbatch.autobatch
def f(xs, n, config):
    table = TABLE
    table[0] = n
    _, (rows, _) = n, config.parts
    rows[1] = n
    fine = inner(xs, n)
    fine[0] = n
    pair = list((xs, n))
    mine = pair[0]
    mine[0] = xs[0]
    flat = np.reshape(fine, [-1])
    fine[0] = 1
    doubled = np.multiply(xs, 2)
    xs[0] = n
    for i, row in enumerate(zip(rows, xs)):
        one, other = row
        other[0] = one
    return xs, mine, fine, flat, doubled
