"""A list that grows in a loop: of too many turns, of turns that differ by lane, while the loop goes over it."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([1, 2], np.int32))


@pcbatch.autobatch
def long_loops(x, n):
    many = []
    for i in range(30):
        for j in range(10):
            many.append(x + i * j)
    some = []
    for _ in range(n):
        some.append(x)
    grown = [x, x]
    for y in grown:
        grown.append(y)
    return many, some, grown
