"""A call's tuple indexed in place, kept whole, passed on to another call, and partly thrown away."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "int32", "int32")


@pcbatch.autobatch
def ordered(a, b):
    if a <= b:
        return a, b
    return b, a


@pcbatch.autobatch
def spread(pair):
    low, high = pair
    return high - low


@pcbatch.autobatch
def tuple_call_results(a, b):
    pair = ordered(a, b)
    _, high = ordered(a + 1, b)
    return ordered(b, a)[1], pair[0], spread(pair) + spread(ordered(b, 3)), high


def batch(rng, lanes):
    return rng.integers(0, 9, lanes, dtype=np.int32), rng.integers(0, 9, lanes, dtype=np.int32)


def twin(a, b):
    return max(a, b), min(a, b), abs(a - b) + abs(b - 3), max(a + 1, b)
