import numpy as np

import pcbatch


@pcbatch.autobatch
def no_text(x):
    pcbatch.debug(x)
    return x


@pcbatch.autobatch
def too_few(x):
    pcbatch.debug("{} {}", x)
    return x


@pcbatch.autobatch
def by_name(x):
    pcbatch.debug("{name}", x)
    return x


@pcbatch.autobatch
def an_option(x):
    pcbatch.debug("x", x, end="")
    return x


@pcbatch.autobatch
def nothing(x):
    pcbatch.debug()
    return x


@pcbatch.autobatch
def waiting(x):
    pcbatch.sync(x)
    return x


X = (np.ones(2, np.float32),)
ARGUMENTS = {"no_text": X, "too_few": X, "by_name": X, "an_option": X, "nothing": X, "waiting": X}
