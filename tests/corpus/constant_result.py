"""Results that depend on no argument: every lane still gets them."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "bool")


@pcbatch.autobatch
def constant_result(n):
    return 42, 0.5, True


def batch(rng, lanes):
    return (rng.integers(0, 6, lanes, dtype=np.int32),)


def twin(n):
    return 42, 0.5, True
