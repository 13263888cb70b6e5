import numpy as np

import pcbatch


@pcbatch.autobatch
def on_one_path(n):
    if n > 0:
        sign = 1
    return sign


@pcbatch.autobatch
def in_a_loop(n):
    for i in range(n):
        last = i
    return last


@pcbatch.autobatch
def before_it_is(n):
    total += n
    return total


@pcbatch.autobatch
def misspelt(number):
    value = numbr + 1
    return value


X = (np.ones(2, np.int32),)
ARGUMENTS = {"on_one_path": X, "in_a_loop": X, "before_it_is": X, "misspelt": X}
