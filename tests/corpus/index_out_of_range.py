"""Reads beyond either end of a lane array fail; negative indices within it count from the end."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def index_out_of_range(values, i):
    return values[i] * 2, values[-1] + values[-2]


def batch(rng, lanes):
    return rng.integers(0, 9, (lanes, 4), dtype=np.int32), rng.integers(-6, 6, lanes, dtype=np.int32)


def twin(values, i):
    return 2 * int(np.tile(values, 2)[i + 4]), int(values[2:].sum())


def status(values, i):
    return "OK" if -4 <= i < 4 else "INDEX"
