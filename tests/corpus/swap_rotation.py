"""Three variables change places at once, in a loop."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "int32")


@pcbatch.autobatch
def swap_rotation(a, b, c, n):
    for _ in range(n):
        a, b, c = b, c, a
    return a - b, b - c, a * 2


def batch(rng, lanes):
    return *(rng.integers(0, 9, lanes, dtype=np.int32) for _ in range(3)), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(a, b, c, n):
    a, b, c = np.roll([a, b, c], -n).tolist()
    return a - b, b - c, a * 2
