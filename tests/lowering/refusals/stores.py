"""What cannot be stored where: an index that is no integer, too many indices, and an element of another dtype."""

import numpy as np

import pcbatch

BATCH = (np.ones((2, 4), np.float32), np.array([1, 2], np.int32), np.array([1.0, 2.0], np.float32))


@pcbatch.autobatch
def stores(xs, i, x):
    xs[x] = 1.0
    xs[i, i] = 1.0
    xs[i] = i
    counts = xs > 0.0
    counts[0] = 0.5
    xs[1:3] = xs[:3]
    xs[[0, 1]] = 1.0
    place = (x, x)
    xs[i] = place
    pair = (xs, x)
    pair[0] = xs
    return pair, counts
