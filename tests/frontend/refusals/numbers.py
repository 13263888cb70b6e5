import numpy as np

import pcbatch


@pcbatch.autobatch
def too_large(n):
    return n + 2147483648


@pcbatch.autobatch
def too_small(n):
    return n * -2147483649


X = (np.ones(2, np.int32),)
ARGUMENTS = {"too_large": X, "too_small": X}
