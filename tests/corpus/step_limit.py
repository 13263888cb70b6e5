"""More loop turns and calls than `max_steps` in some lanes: each turn makes one call, so the lane takes 2 n steps."""

import numpy as np

import pcbatch

DTYPES = ("int32",)
OPTIONS = {"max_steps": 20}


@pcbatch.autobatch
def successor(n):
    return n + 1


@pcbatch.autobatch
def step_limit(n):
    total = 0
    while total < n:
        total = successor(total)
    return total


def batch(rng, lanes):
    return (rng.integers(0, 20, lanes, dtype=np.int32),)


def twin(n):
    return n


def status(n):
    return "OK" if n <= 10 else "MAX_STEPS"
