"""A recursive function that returns a tuple, unpacked at the call: division by repeated subtraction."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def tuple_return(a, b):
    if a < b:
        return 0, a
    quotient, remainder = tuple_return(a - b, b)
    return quotient + 1, remainder


def batch(rng, lanes):
    return rng.integers(0, 30, lanes, dtype=np.int32), rng.integers(3, 7, lanes, dtype=np.int32)


def twin(a, b):
    return divmod(a, b)
