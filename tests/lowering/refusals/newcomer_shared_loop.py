"""The same in a loop over what should be a table."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def newcomer_shared_loop(x, table):
    for value in table:
        x = x + value
    return x


ARGUMENTS = {"newcomer_shared_loop": (np.zeros(2, np.float32), np.arange(2, dtype=np.float32))}
