import numpy as np

import pcbatch


@pcbatch.autobatch
def of_numbers(x):
    y = x
    return 1.0 if x is y else 0.0


@pcbatch.autobatch
def of_an_array(a):
    return 1.0 if a else 0.0


@pcbatch.autobatch
def in_a_text(x):
    return 1.0 if x in "abc" else 0.0


X = (np.ones(2, np.float32),)
ARGUMENTS = {"of_numbers": X, "of_an_array": (np.ones([2, 3], np.float32),), "in_a_text": X}
