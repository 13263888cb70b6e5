"""Conditional expressions: nested, and one whose condition guards a division."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32", "int32")


@pcbatch.autobatch
def conditional_expressions(a, b):
    larger = a if a > b else b
    quotient = a // b if b != 0 else -1
    sign = 1 if a > 0 else 0 if a == 0 else -1
    return larger, quotient, sign


def batch(rng, lanes):
    return rng.integers(-9, 9, lanes, dtype=np.int32), rng.integers(-2, 3, lanes, dtype=np.int32)


def twin(a, b):
    return max(a, b), -1 if not b else int(np.floor(a / b)), int(np.sign(a))
