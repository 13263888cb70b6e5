"""A batched function called in a loop, its sign deciding which end moves; float64."""

import numpy as np

import pcbatch

DTYPES = ("float64",)
TWIN_TOLERANCE = 1e-5


@pcbatch.autobatch
def cubic(x, shift):
    return x * x * x + x - shift


@pcbatch.autobatch
def bisection(shift):
    low, high = -3.0 + 0.0 * shift, 3.0 + 0.0 * shift
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if cubic(middle, shift) > 0.0:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def batch(rng, lanes):
    return (rng.uniform(-20, 20, lanes),)


def twin(shift):
    roots = np.roots([1, 0, 1, -shift])
    return float(roots[np.argmin(abs(roots.imag))].real)
