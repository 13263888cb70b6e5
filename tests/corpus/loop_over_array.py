"""`for x in xs` over a lane array and over an array of the module, with `break`, `continue`, `else` and nesting."""

import numpy as np

import pcbatch

DTYPES = ("float32", "int32")
WEIGHTS = np.array([0.5, -1.0, 2.0], np.float32)


@pcbatch.autobatch
def loop_over_array(values, limit):
    total = 0.0
    skipped = 0
    for value in values:
        if value < 0.0:
            skipped += 1
            continue
        for weight in WEIGHTS:
            total += weight * value
            if total > limit:
                break
        else:
            total += 0.25
        if total > limit:
            break
    else:
        skipped -= 10
    return total, skipped


def batch(rng, lanes):
    return rng.normal(0.5, 1.0, (lanes, 5)).astype(np.float32), rng.uniform(0, 9, lanes).astype(np.float32)


def twin(values, limit):
    total, skipped, ended = 0.0, 0, True
    for value in values.tolist():
        if value < 0:
            skipped += 1
            continue
        steps = total + np.cumsum([0.5, -1.0, 2.0]) * value
        over = np.flatnonzero(steps > limit)
        total = float(steps[over[0]]) if over.size else float(steps[-1]) + 0.25
        if total > limit:
            ended = False
            break
    return total, skipped - 10 * ended
