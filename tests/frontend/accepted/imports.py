"""Imports inside of functions."""

import numpy as np

import pcbatch


def halved(x):
    import math as m

    return m.sqrt(x)


@pcbatch.autobatch
def of_modules(x):
    import math
    import os.path
    from math import floor as down
    from math import pi, sqrt

    return math.exp(x) + down(x) + sqrt(x) * pi, len(os.path.sep)


@pcbatch.autobatch
def on_one_path(x):
    if x > 1.0:
        import numpy.linalg

        y = numpy.linalg.norm(np.array([x, x]))
    else:
        from functools import reduce as folded

        y = folded(lambda a, b: a * b, [x, x, 2.0])
    return y


@pcbatch.autobatch
def in_a_loop(x):
    for _ in range(3):
        import math

        def root(v):
            return math.sqrt(v)

        x = root(x)
    return x


@pcbatch.autobatch
def in_a_helper(x):
    return halved(x)


EXAMPLES = dict.fromkeys(["of_modules", "on_one_path", "in_a_loop", "in_a_helper"], [(0.5,), (2.0,), (9.0,)])
