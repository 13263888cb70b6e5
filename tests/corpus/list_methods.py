"""What looks at the values in a list: where one stands, how often, in which order. One that is not there is a fault."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "int32", "int32") + ("float32",) * 9


@pcbatch.autobatch
def list_methods(x, y, n):
    free = [x, 0.0, y, 0.5]
    first = free.index(min(free))
    times = [1, 2, n, 1].count(1)
    seen = pcbatch.bounded([], tf.float32, 8)
    while n > 0:
        free.sort()
        free[0] += 1.5
        seen.append(free[0])
        n -= 1
    place = (1.0, x, 2.0).index(x) + [0, 1, 2, 3, 4].index(times + n)
    down = sorted((x, y, -0.5), reverse=True)
    total = sum(seen) + (1.0 if y in seen else 2.0)
    if x > 4.0:
        place += [1.0, y].index(x)
    return first, times, place, free, sorted(free[1:]), down[0], total


def batch(rng, lanes):
    x = rng.uniform(-3.0, 5.0, lanes).astype(np.float32)
    return x, rng.uniform(-3.0, 5.0, lanes).astype(np.float32), rng.integers(0, 5, lanes, dtype=np.int32)


def status(x, y, n):
    """What is looked for last is not there."""
    return "ARITHMETIC" if x > 4.0 else "OK"
