"""Numbers of two dtypes, methods that arrays have and tensors do not, a None that is not asked for."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([1, 2], np.int32))


@pcbatch.autobatch
def newcomer_mixtures(x, n, shift=None):
    product = x * n
    half = n * 0.5
    if x > 1.0:
        chosen = n
    else:
        chosen = x
    if product > half:
        chosen = x.sum()
    if n > 1:
        chosen = x + shift
    return chosen
