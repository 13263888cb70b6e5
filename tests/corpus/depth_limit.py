"""A recursion deeper than `max_depth` in some lanes: a limit on live calls, whatever the size of the stacks."""

import numpy as np

import pcbatch

DTYPES = ("int32",)
OPTIONS = {"max_depth": 8}


@pcbatch.autobatch
def depth_limit(n):
    if n == 0:
        return 0
    return depth_limit(n - 1) + 1


def batch(rng, lanes):
    return (rng.integers(4, 13, lanes, dtype=np.int32),)


def twin(n):
    return n


def status(n):
    return "OK" if n <= 8 else "MAX_DEPTH"
