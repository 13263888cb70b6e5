"""Hints: lanes wait at a block of its own, in a loop, an arm and first in a function; a row's cost."""

import pcbatch

EXAMPLES = [(0,), (1,), (5,)]


@pcbatch.autobatch
@pcbatch.cost(1e6)
def dear(x):
    pcbatch.sync()
    return x * x


@pcbatch.autobatch
@pcbatch.cost(2)
def hints(n):
    total = 0
    while n > 0:
        if n % 2 == 0:
            pcbatch.sync()
        n = n - 1
        pcbatch.sync()
        total = total + dear(n)
        pcbatch.sync()
    pcbatch.sync()
    return total
