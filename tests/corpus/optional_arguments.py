"""Arguments that may be None: the branch that asks has one arm, so the other one need not even have a type."""

import numpy as np

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def weighed(x, weight=None, shift=None):
    if weight is not None:
        x = x * weight
    if shift is None:
        return x
    return x + shift


@pcbatch.autobatch
def optional_arguments(x, y, limit=None):
    while weighed(x, shift=1.0) < weighed(y, 2.0):
        x = x + weighed(y, 0.5, shift=x * x) + 1.0
        if limit is not None and x > limit:
            break
    return weighed(x) - y


def batch(rng, lanes):
    return rng.uniform(0.0, 4.0, lanes).astype(np.float32), rng.uniform(0.0, 8.0, lanes).astype(np.float32)


def twin(x, y):
    while x + 1.0 < y * 2.0:
        x = x + y * 0.5 + x * x + 1.0
    return x - y
