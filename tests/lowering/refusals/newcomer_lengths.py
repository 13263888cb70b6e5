"""Lists and arrays whose length a lane decides: repeated, grown, of a size by lane, in a comprehension."""

import numpy as np
import tensorflow as tf

import pcbatch

BATCH = (np.array([1, 2], np.int32),)


@pcbatch.autobatch
def newcomer_lengths(n):
    if n > 5:
        zeros = [0] * n
    elif n > 4:
        zeros = tf.range(n)
    elif n > 3:
        zeros = tf.zeros([n], tf.int32)
    else:
        zeros = [i * i for i in range(n)]
    found = []
    for i in range(n):
        found = [*found, i]
    return zeros, found
