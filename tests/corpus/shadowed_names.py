"""Parameters and locals that have the names of the module's variables and functions, batched ones too."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")
total = 100
scale = 7


@pcbatch.autobatch
def double(x):
    return 2 * x


@pcbatch.autobatch
def quadruple(x):
    return double(double(x))


@pcbatch.autobatch
def shadowed_names(x, scale):
    total = x * scale
    for double in range(3):
        total += double
    double = quadruple(total)
    return total, double


def batch(rng, lanes):
    return rng.integers(-9, 9, lanes, dtype=np.int32), rng.integers(-9, 9, lanes, dtype=np.int32)


def twin(x, factor):
    return x * factor + 3, 4 * x * factor + 12
