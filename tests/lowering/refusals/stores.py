"""What cannot be stored where: an index that is no integer, too many indices, and an element of another dtype."""

import numpy as np

import pcbatch


@pcbatch.autobatch
def at_a_float(xs, i, x):
    xs[x] = 1.0
    return xs


@pcbatch.autobatch
def too_many_indices(xs, i, x):
    xs[i, i] = 1.0
    return xs


@pcbatch.autobatch
def into_bools(xs, i, x):
    counts = xs > 0.0
    counts[0] = 0.5
    return counts


@pcbatch.autobatch
def other_shape(xs, i, x):
    xs[1:3] = xs[:3]
    return xs


@pcbatch.autobatch
def tuple_as_element(xs, i, x):
    place = (x, x)
    xs[i] = place
    return xs


BATCH = (np.ones((2, 4), np.float32), np.array([1, 2], np.int32), np.array([1.0, 2.0], np.float32))
ARGUMENTS = dict.fromkeys(["at_a_float", "too_many_indices", "into_bools", "other_shape", "tuple_as_element"], BATCH)
