import numpy as np

import pcbatch


@pcbatch.autobatch
def an_f_string(x):
    return len(f"x is {x}")


@pcbatch.autobatch
def by_percent(x):
    return len("x is %d" % x)


@pcbatch.autobatch
def by_format(x):
    return len("x is {}".format(x))


@pcbatch.autobatch
def by_str(x):
    return len(str(x))


@pcbatch.autobatch
def by_a_message(x):
    assert x > 0, "x is " + str(x)
    return x


X = (np.ones(2, np.float32),)
ARGUMENTS = {"an_f_string": X, "by_percent": X, "by_format": X, "by_str": X, "by_a_message": X}
