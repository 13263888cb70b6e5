"""int32 arithmetic of a lane wraps around, as NumPy's does, not as Python's."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def wrapping(state, n):
    for _ in range(n):
        state = state * 1103515245 + 12345
    return state


def batch(rng, lanes):
    return rng.integers(-(2**31), 2**31, lanes, dtype=np.int32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(state, n):
    for _ in range(n):
        state = (state * 1103515245 + 12345 + 2**31) % 2**32 - 2**31
    return state
