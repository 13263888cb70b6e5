"""None: a default that is replaced, a structure's empty field, an attribute; the arm that is not taken has no types."""

import collections

import numpy as np

import pcbatch

DTYPES = ("float32", "int32", "float32")
Options = collections.namedtuple("Options", "offset rows")


class Model:
    def __init__(self, bias, scale):
        self.bias, self.scale = bias, scale

    @pcbatch.autobatch
    def score(self, x):
        if self.bias is not None and x > 0:
            x = x + self.bias[0]
        match self.scale:
            case None:
                return x
            case _:
                return x * self.scale[1]


PLAIN = Model(None, None)
SCALED = Model(np.array([0.5], np.float32), np.array([1.0, 2.0], np.float32))


@pcbatch.autobatch
def power(x, times, start=None):
    if start is None:
        start = x
    for _ in range(times):
        start = start * x
    return start


@pcbatch.autobatch
def shifted(n, options):
    none = options.rows is None
    if none or n > 3:
        return n + options.offset
    return n + options.rows[1]


@pcbatch.autobatch
def optional_values(x, n, row):
    scores = PLAIN.score(x) + SCALED.score(x)
    with_rows = shifted(n, Options(10, row))
    y = power(x, n) if x > 0 else power(x, n, 1.0)
    return y, shifted(n, Options(1, None)) + with_rows, scores


def batch(rng, lanes):
    return (
        rng.normal(size=lanes).astype(np.float32),
        rng.integers(0, 6, lanes, dtype=np.int32),
        rng.integers(0, 9, (lanes, 2), dtype=np.int32),
    )


def twin(x, n, row):
    y = x ** (n + 1) if x > 0 else x**n
    return y, 2 * n + 1 + (10 if n > 3 else row[1]), x + 2 * (x + 0.5 if x > 0 else x)
