"""Where `math` and `int` would raise in Python, the lane fails: outside of a domain, too large, not a number."""

import math

import numpy as np

import pcbatch

DTYPES = ("float64", "int32")


@pcbatch.autobatch
def math_domain(x, y):
    if y > 0.5:
        a = math.sqrt(x) + math.log(x)
    else:
        a = math.exp(x * 200.0) if y < -0.5 else math.acos(x * 0.2)
    return a, int(y / x * 1e9)


def batch(rng, lanes):
    return np.round(rng.uniform(-8, 8, lanes)), rng.uniform(-1, 1, lanes)


def status(x, y):
    with np.errstate(all="ignore"):
        a = np.sqrt(x) + np.log(x) if y > 0.5 else np.exp(x * 200) if y < -0.5 else np.arccos(x * 0.2)
        quotient = np.float64(y) / x
    return "OK" if np.isfinite(a) and abs(quotient * 1e9) < 2**31 else "ARITHMETIC"
