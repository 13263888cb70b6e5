"""Hints in forms that mean nothing."""

import pcbatch

DEAR = 3.5


@pcbatch.autobatch
@pcbatch.cost(-1.0)
def cheap(n):
    return n


@pcbatch.autobatch
@pcbatch.cost(DEAR)
def dear(n):
    return n


@pcbatch.autobatch
@pcbatch.cost()
def nothing(n):
    return n


@pcbatch.autobatch
def hints(n):
    pcbatch.sync(n)
    waited = pcbatch.sync()
    return n + (pcbatch.sync() or waited)
