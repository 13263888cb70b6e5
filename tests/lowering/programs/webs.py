"""A name that is used again for another type is two variables; with the same type it stays one."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1.0, 2.0], np.float32), np.array([3, 4], np.int32))


@pcbatch.autobatch
def webs(x, n):
    seen = 0
    s = n
    while s > 0:
        s -= 2
    left = s
    s = tf.stack([x, x])
    while n > 0:
        s = s * 2.0
        n -= 1
    seen = 0.5
    s = left + 1 + int(seen)
    seen = 1
    while s > 0:
        seen = s
        s -= 1
    return s + seen
