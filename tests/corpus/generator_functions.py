"""Functions with `yield` that loops, folds and other generators go over, and values that are None in some lanes."""

import numpy as np

import pcbatch

DTYPES = ("int32", "float32", "int32")


@pcbatch.autobatch
def generator_functions(n, x):
    changes = 0

    def halvings(k):
        nonlocal changes
        while k > 0:
            yield k
            k = k // 2
            changes += 1

    def both(k):
        yield from halvings(k)
        yield 7

    total = 0.0
    smallest = None
    for place, k in enumerate(both(n)):
        if k == 4:
            continue
        if k % 2 == 1 and (smallest is None or k < smallest):
            smallest = k
        total += place * k * x
        if total > 100.0:
            break
    largest = max(both(n))
    return largest, total, changes + (0 if smallest is None else smallest)


def batch(rng, lanes):
    return rng.integers(0, 60, lanes, dtype=np.int32), rng.uniform(0.5, 2.0, lanes).astype(np.float32)


def twin(n, x):
    def halved(k):
        return [] if k == 0 else [k, *halved(k // 2)]

    rows = [*halved(n), 7]
    total, odd, changes = np.float32(0.0), [], 0
    for place, k in enumerate(rows):
        changes = min(place, len(rows) - 1)
        if k == 4:
            continue
        odd += [k] * (k % 2)
        total = np.float32(total + np.float32(place * k) * x)
        if total > 100.0:
            break
    return max(rows), total, changes + len(rows) - 1 + min(odd, default=0)
