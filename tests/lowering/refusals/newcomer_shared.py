"""A newcomer's mistake: a table that all lanes share is given as if each lane had a number of it.

Behind a branch that is decided then there is a store that no definition of the table reaches.
"""

import numpy as np

import pcbatch


@pcbatch.autobatch
def newcomer_shared(k, table):
    found = True
    if table[k] == 2.0:
        found = False
    if found:
        table[k] = 1.0
        table = newcomer_shared(k + 1, table)
        table[k] = 0.0
    return table


ARGUMENTS = {"newcomer_shared": (np.zeros(2, np.int32), np.arange(2, dtype=np.float32))}
