"""Functions of `math` by whatever name: Python's floats, so that what they decide is decided as in Python."""

import math
import math as mathematics
from math import sqrt as root

import numpy as np

import pcbatch

DTYPES = ("float32", "float64", "int32", "int32", "bool", "float32", "float64", "int32", "float64")
TWIN_TOLERANCE = 1e-5


def floor(x):
    return x + 0.25


@pcbatch.autobatch
def math_functions(x, y, n):
    total = 0.0
    for i in range(3):
        total = total + math.exp(i * 0.1) * x
    near = mathematics.isfinite(x) and not math.isnan(y)
    return (
        total + floor(x),
        root(abs(y)) * math.cos(y) + math.atan2(y, 2),
        math.floor(x) + math.ceil(y) + int(x) + math.trunc(y),
        n + math.isqrt(n * n + 1),
        near,
        math.copysign(1.0, x) * math.hypot(x, 3) + math.pi,
        math.fmod(y, 0.75) + math.log(abs(y) + 1.0, 3) + math.lgamma(abs(y) + 1),
        math.floor(math.log2(n + 1)),
        math.dist([x, y], (1.0, n)),
    )


def batch(rng, lanes):
    reals = rng.normal(size=lanes).astype(np.float32) * 3, rng.normal(size=lanes)
    return *reals, rng.integers(0, 100, lanes, dtype=np.int32)


def twin(x, y, n):
    return (
        (1 + np.exp(0.1) + np.exp(0.2)) * x + x + 0.25,
        np.abs(y) ** 0.5 * np.cos(y) + np.arctan(y / 2),
        int(np.floor(x) + np.ceil(y) + np.trunc(x) + np.trunc(y)),
        n + max(n, int(n == 0)),
        True,
        np.sign(x) * (x * x + 9) ** 0.5 + np.pi,
        y - np.trunc(y / 0.75) * 0.75 + np.log1p(abs(y)) / np.log(3) + math.log(math.gamma(abs(y) + 1)),
        (n + 1).bit_length() - 1,
        ((x - 1) ** 2 + (y - n) ** 2) ** 0.5,
    )
