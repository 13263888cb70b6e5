"""Comprehensions with batched calls, and functions that take any number of arguments."""

import numpy as np

import pcbatch

DTYPES = ("int32",) * 6


@pcbatch.autobatch
def steps(n):
    count = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


@pcbatch.autobatch
def longest(first, *rest):
    best = first
    for other in rest:
        if steps(other) > steps(best):
            best = other
    return best


@pcbatch.autobatch
def comprehensions(xs, n):
    K = 2
    counts = [steps(x) + 100 * i for i, x in enumerate(xs)]
    some = any(steps(x) > 15 for x in xs)
    rest = (xs[1], xs[2])
    total = sum(steps(n + i) for i in range(K))
    return counts, total if some else -total, longest(n, *rest), longest(n)


def batch(rng, lanes):
    return rng.integers(1, 40, (lanes, 3), dtype=np.int32), rng.integers(1, 40, lanes, dtype=np.int32)


def twin(xs, n):
    def count(n):
        return 0 if n <= 1 else 1 + count(n // 2 if n % 2 == 0 else 3 * n + 1)

    total = count(n) + count(n + 1)
    counts = [count(int(x)) + 100 * i for i, x in enumerate(xs)]
    best = n
    for x in xs[1:]:
        best = x if count(int(x)) > count(int(best)) else best
    return counts, total if any(count(int(x)) > 15 for x in xs) else -total, best, n
