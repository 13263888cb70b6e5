"""Random draws in a loop, each from the lane's key and the turn's number."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def random_walk(key, n):
    position = 0
    for i in range(n):
        if pcbatch.random.uniform(pcbatch.random.fold_in(key, i)) < 0.5:
            position += 1
        else:
            position -= 1
    return position


def batch(rng, lanes):
    return rng.integers(0, 2**32, (lanes, 2), dtype=np.uint32), rng.integers(0, 9, lanes, dtype=np.int32)
