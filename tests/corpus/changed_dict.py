"""Dicts whose entries change: by literal keys, by keys that are constants, added and taken away."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "float32", "float32", "float32", "int32", "float32")
LAST = "last"


@pcbatch.autobatch
def changed_dict(x, n):
    found = {"odd": 0, "even": 0, "sums": {"all": x}, "old": x}
    del found["old"]
    while n > 0:
        if n % 2 == 0:
            found["even"] += 1
            found["sums"]["all"] *= 2.0
        else:
            found["odd"] += n
        n -= 1
    found[LAST] = x
    found[LAST] += 1.0
    found.update(more=x - 1.0, less=3.0)
    even = found.pop("even")
    none = found.pop("none", x)
    return found, even, none


def batch(rng, lanes):
    return rng.normal(size=lanes).astype(np.float32), rng.integers(0, 7, lanes, dtype=np.int32)


def twin(x, n):
    odd = sum(each for each in range(n + 1) if each % 2)
    found = {"odd": odd, "sums": {"all": x * 2.0 ** (n // 2)}, "last": x + 1, "more": x - 1, "less": 3.0}
    return found, n // 2, x
