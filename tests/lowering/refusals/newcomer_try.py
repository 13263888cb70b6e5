"""A newcomer's first mistake: an exception cannot be caught in one lane of many."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def newcomer_try(x):
    try:
        y = np.log(x)
    except ValueError:
        y = 0.0
    return y
