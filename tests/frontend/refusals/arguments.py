import numpy as np

import pcbatch

STEP = 2


@pcbatch.autobatch
def g(a, b, /, c, d=1, *, e, h=STEP):
    return a


@pcbatch.autobatch
def one_alone(x):
    return g(x)


@pcbatch.autobatch
def without_a_name(x):
    return g(x, x, x)


@pcbatch.autobatch
def too_many(x):
    return g(x, x, x, x, x, e=1, h=1)


@pcbatch.autobatch
def twice(x):
    return g(x, x, x, c=x, e=1)


@pcbatch.autobatch
def unknown(x):
    return g(x, x, x, e=1, z=1)


@pcbatch.autobatch
def by_position_alone(x):
    return g(x, x, x, e=1, a=1)


def helper(x, y):
    return x + y


@pcbatch.autobatch
def of_a_helper(x):
    return (lambda v: helper(v))(x)


X = (np.ones(2, np.float32),)
ARGUMENTS = {
    "one_alone": X,
    "without_a_name": X,
    "too_many": X,
    "twice": X,
    "unknown": X,
    "by_position_alone": X,
    "of_a_helper": X,
}
