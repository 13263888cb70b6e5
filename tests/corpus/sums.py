"""sum, any, all, pow, min and max of vectors, of tuples and of generators."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "int32", "bool", "bool", "bool", "int32", "float32")


@pcbatch.autobatch
def sums(v, x, n):
    w = (x, n * 1.0 if False else 0.5, 2)
    positive = any(v > 6) or all(v < 6)
    return (
        sum(v) + n,
        sum(w),
        sum((v[i] * v[i] for i in range(3)), 1),
        positive,
        any(v[i] == v[i + 1] for i in range(3)),
        all((x > -1.0, n != 3, True)),
        pow(n, 2) + max(v) - min(v),
        min(w) + max(x, 0.25),
    )


def batch(rng, lanes):
    vectors = rng.integers(0, 8, (lanes, 4), dtype=np.int32)
    return vectors, rng.normal(size=lanes).astype(np.float32), rng.integers(0, 6, lanes, dtype=np.int32)


def twin(v, x, n):
    return (
        int(v.sum()) + n,
        x + 2.5,
        int((v[:3] ** 2).sum()) + 1,
        bool(v.max() > 6 or v.max() < 6),
        bool((np.diff(v) == 0).any()),
        x > -1 and n != 3,
        n * n + int(np.ptp(v)),
        min(x, 0.5) + max(x, 0.25),
    )
