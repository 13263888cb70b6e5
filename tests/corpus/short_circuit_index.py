"""A loop condition whose left side keeps the index of its right side in range."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def short_circuit_index(values, needle):
    i = 0
    while i < len(values) and values[i] != needle:
        i += 1
    return i


def batch(rng, lanes):
    return rng.integers(0, 8, (lanes, 6), dtype=np.int32), rng.integers(0, 8, lanes, dtype=np.int32)


def twin(values, needle):
    return [*values.tolist(), needle].index(needle)
