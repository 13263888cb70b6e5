"""`break` and `continue` in one loop over a lane array."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def break_continue(values, limit):
    total = 0
    skipped = 0
    for i in range(len(values)):
        if values[i] < 0:
            skipped += 1
            continue
        if total + values[i] > limit:
            break
        total += values[i]
    return total, skipped


def batch(rng, lanes):
    return rng.integers(-3, 9, (lanes, 6), dtype=np.int32), rng.integers(0, 30, lanes, dtype=np.int32)


def twin(values, limit):
    sums = np.cumsum(np.maximum(values, 0))
    over = sums > limit
    stop = int(np.argmax(over)) if over.any() else len(values)
    return int(sums[stop - 1]) if stop else 0, int(np.sum(values[:stop] < 0))
