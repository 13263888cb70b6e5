"""Lists and arrays whose length a lane decides: repeated, grown, of a size by lane, in a comprehension."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def repeated(n):
    return [0] * n


@pcbatch.autobatch
def ranged(n):
    return tf.range(n)


@pcbatch.autobatch
def zeros(n):
    return tf.zeros([n], tf.int32)


@pcbatch.autobatch
def comprehension(n):
    return [i * i for i in range(n)]


@pcbatch.autobatch
def growing(n):
    found = []
    for i in range(n):
        found = [*found, i]
    return found


BATCH = (np.array([1, 2], np.int32),)
ARGUMENTS = dict.fromkeys(["repeated", "ranged", "zeros", "comprehension", "growing"], BATCH)
