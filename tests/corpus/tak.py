"""Three calls as the arguments of a fourth, each needing all three parameters."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def tak(x, y, z):
    if x <= y:
        return y
    return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))


def batch(rng, lanes):
    return tuple(rng.integers(0, 5, lanes, dtype=np.int32) for _ in range(3))


def twin(x, y, z):
    return y if x <= y else z if y <= z else x
