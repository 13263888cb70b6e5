"""Complex literals: how long an orbit stays near zero."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "bool")


@pcbatch.autobatch
def mandelbrot(x, y):
    c = tf.complex(x, y)
    z, turns = 0j, 0
    while turns < 20 and abs(z) < 2.0:
        z = z * z + c + 0.25j
        turns += 1
    return turns, abs(z) < 2.0


def batch(rng, lanes):
    x, y = rng.integers(-8, 9, (2, lanes))
    return (x / 5).astype(np.float32), (y / 5).astype(np.float32)


def twin(x, y):
    z, turns = 0j, 0
    while turns < 20 and abs(z) < 2:
        z = z * z + complex(x, y + 0.25)
        turns += 1
    return turns, abs(z) < 2
