import numpy as np

import pcbatch


@pcbatch.autobatch
def a_number(x):
    if x > 0:
        raise x
    return x


@pcbatch.autobatch
def made_before(x):
    problem = ValueError("bad", x)
    if x > 0:
        raise problem
    return x


X = (np.ones(2, np.float32),)
ARGUMENTS = {"a_number": X, "made_before": X}
