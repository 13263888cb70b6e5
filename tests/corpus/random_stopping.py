"""Draws until one is large enough, the key split each time; the last key, bit for bit, is a result."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "uint32")


@pcbatch.autobatch
def random_stopping(key):
    draws = 0
    draw = 0.0
    while draw < 0.75 and draws < 12:
        key, now = pcbatch.random.split(key)
        draw = pcbatch.random.uniform(now)
        draws += 1
    return draws, draw, key


def batch(rng, lanes):
    return (rng.integers(0, 2**32, (lanes, 2), dtype=np.uint32),)
