"""An early return out of two nested loops: the first Pythagorean triple of a given sum."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def return_from_loops(perimeter):
    for a in range(1, perimeter):
        for b in range(a, perimeter):
            c = perimeter - a - b
            if c <= 0:
                break
            if a * a + b * b == c * c:
                return a, b
    return 0, 0


def batch(rng, lanes):
    return (rng.choice(np.array([0, 3, 7, 12, 13, 24], np.int32), lanes),)


def twin(perimeter):
    return {12: (3, 4), 24: (6, 8)}.get(perimeter, (0, 0))
