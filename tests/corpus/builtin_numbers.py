"""Python's functions on numbers: abs, min, max, int, float, bool, len."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "float32", "bool", "float32", "int32")


@pcbatch.autobatch
def builtin_numbers(x, n, values):
    clipped = max(-3, min(n, 3, len(values)))
    return abs(n) + clipped, int(x), float(n) * 0.5, bool(n), abs(x), min(values[0], values[1], n)


def batch(rng, lanes):
    return (
        rng.uniform(-5, 5, lanes).astype(np.float32),
        rng.integers(-5, 6, lanes, dtype=np.int32),
        rng.integers(-5, 6, (lanes, 2), dtype=np.int32),
    )


def twin(x, n, values):
    least = int(min(values.min(), n))
    return abs(n) + int(np.clip(n, -3, 2)), int(np.trunc(x)), n / 2, n != 0, float(np.fabs(x)), least
