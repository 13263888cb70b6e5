"""A loop that is written out for the list that grows in it, beside one that stays a loop; keys of a dict."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([1, 2], np.int32))


@pcbatch.autobatch
def written_out(x, n):
    powers = []
    for k in range(2):
        powers.append(x ** (k + 1))
    stock = {"a": x, "b": 2.0 * x}
    for key in stock:
        if stock[key] > 2.0:
            break
        stock[key] += powers[1]
    total = 0.0
    for k in range(3):
        total += x * k
    return powers, stock, total
