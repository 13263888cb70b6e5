"""Four ways to fail, deep in a recursion, each in some lanes; what is live in the callers is lost with the lane."""

import numpy as np

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def mixed_failures(values, n, kind):
    if n == 0:
        assert kind != 1, "the first kind"
        if kind == 2:
            raise RuntimeError("the second kind")
        return values[kind] + 12 // (kind - 3)
    kept = values[n]
    return mixed_failures(values, n - 1, kind) + kept


def batch(rng, lanes):
    return (
        rng.integers(0, 9, (lanes, 5), dtype=np.int32),
        rng.integers(0, 5, lanes, dtype=np.int32),
        rng.integers(0, 6, lanes, dtype=np.int32),
    )


def twin(values, n, kind):
    return int(values[kind] + 12 // (kind - 3) + values[1 : n + 1].sum())


def status(values, n, kind):
    return ("OK", "ASSERTION", "RAISED", "ARITHMETIC", "OK", "INDEX")[kind]


def message(values, n, kind):
    return ("", "the first kind", "the second kind", "", "", "")[kind]
