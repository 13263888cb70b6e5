"""`for ... in range` whose bounds and step differ by lane; the step has either sign."""

import numpy as np

import pcbatch

DTYPES = ("int32", "int32")


@pcbatch.autobatch
def range_steps(start, stop, step):
    total = 0
    turns = 0
    for i in range(start, stop, step):
        total += i
        turns += 1
    return total, turns


def batch(rng, lanes):
    steps = rng.choice(np.array([-3, -2, -1, 1, 2, 3], np.int32), lanes)
    return rng.integers(-5, 6, lanes, dtype=np.int32), rng.integers(-5, 6, lanes, dtype=np.int32), steps


def twin(start, stop, step):
    turns = max(0, -((start - stop) // step))
    return turns * start + step * turns * (turns - 1) // 2, turns
