"""A nested tuple as result, assembled in both arms of a branch."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "bool")


@pcbatch.autobatch
def structured_result(n, x):
    if n > 0:
        inner = (n, x)
    else:
        inner = (-n, x * x)
    return inner, (n > 0,)


def batch(rng, lanes):
    return rng.integers(-4, 5, lanes, dtype=np.int32), rng.normal(size=lanes).astype(np.float32)


def twin(n, x):
    return (abs(n), x if n > 0 else x * x), (n > 0,)
