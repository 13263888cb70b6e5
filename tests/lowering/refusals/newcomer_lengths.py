"""Lists and arrays whose length a lane decides: repeated, grown, of a size by lane, in a comprehension."""

import numpy as np
import tensorflow as tf

import pcbatch


@pcbatch.autobatch
def ranged(n):
    return tf.range(n)


@pcbatch.autobatch
def zeros(n):
    return tf.zeros([n], tf.int32)


BATCH = (np.array([1, 2], np.int32),)
ARGUMENTS = dict.fromkeys(["ranged", "zeros"], BATCH)
