"""A while loop whose body is a conditional expression, with very different trip counts."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def collatz(n):
    steps = 0
    peak = n
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        peak = max(peak, n)
        steps += 1
    return steps, peak


def batch(rng, lanes):
    return (rng.integers(1, 20, lanes, dtype=np.int32),)


def twin(n):
    path = [n]
    while path[-1] > 1:
        half, odd = divmod(path[-1], 2)
        path.append((half, 6 * half + 4)[odd])
    return len(path) - 1, max(path)
