import numpy as np

import pcbatch


@pcbatch.autobatch
def of_two_kinds(x):
    y = [x, x] if x > 0 else x
    return y


@pcbatch.autobatch
def of_two_shapes(x, a):
    y = a if x > 0 else a[:1]
    return y


@pcbatch.autobatch
def changing_its_kind(x):
    y = 0.0
    while x > 0:
        y, x = (y, x), x - 1
    return x


@pcbatch.autobatch
def two_results(x):
    if x > 0:
        return x, x
    return x


@pcbatch.autobatch
def nothing_or_something(x):
    if x > 0:
        return
    return x


@pcbatch.autobatch
def may_end(x):
    """A loop may end."""
    while x > 0:
        x -= 1
        if x == 5:
            return x


@pcbatch.autobatch
def never_ends(x):
    return never_ends(x + 1)


@pcbatch.autobatch
def always_fails(x):
    raise ValueError(f"bad {x}")


@pcbatch.autobatch
def a_text(x):
    return x, "text"


@pcbatch.autobatch
def a_set(x):
    return {1, 2}


X = (np.ones(2, np.float32),)
ARGUMENTS = {
    "of_two_kinds": X,
    "of_two_shapes": (np.ones(2, np.float32), np.ones([2, 3], np.float32)),
    "changing_its_kind": X,
    "two_results": X,
    "nothing_or_something": X,
    "may_end": X,
    "never_ends": X,
    "always_fails": X,
    "a_text": X,
    "a_set": X,
}
