"""Random draws in a two-way recursion: each branch has a key of its own and decides for itself whether to go on."""

import numpy as np

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def random_tree(key, depth):
    own = pcbatch.random.normal(pcbatch.random.fold_in(key, 0))
    if depth == 0 or own > 1.0:
        return own
    left = random_tree(pcbatch.random.fold_in(key, 1), depth - 1)
    right = random_tree(pcbatch.random.fold_in(key, 2), depth - 1)
    return own + 0.5 * left + 0.5 * right


def batch(rng, lanes):
    return rng.integers(0, 2**32, (lanes, 2), dtype=np.uint32), rng.integers(0, 4, lanes, dtype=np.int32)
