"""A for loop in a for loop, the inner bounds depending on the outer counter, with `continue`."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def nested_loops(n):
    total = 0
    for i in range(n):
        for j in range(i, n):
            if (i + j) % 3 == 0:
                continue
            total += i * j + 1
    return total


def batch(rng, lanes):
    return (rng.integers(0, 7, lanes, dtype=np.int32),)


def twin(n):
    i, j = np.triu_indices(n)
    return int(np.sum((i * j + 1)[(i + j) % 3 != 0]))
