"""Numbers of two dtypes in an arm of a conditional expression, and in a comprehension."""

import numpy as np

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([1, 2], np.int32))


@pcbatch.autobatch
def mixtures_in_arms(x, n):
    one, other = (x, n) if x > 0.0 else (n * 1.0, 3)
    products = [v * n for v in (x, x + 1.0)]
    return one, other, products[0]
