"""One call that is computed lane by lane, as TensorFlow has no rule for it, in a loop of the lane's own length."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "int32")


def distinct(numbers):
    return tf.size(tf.unique(numbers).y)


@pcbatch.autobatch
def looped_call(numbers):
    turns = 0
    while pcbatch.fallback(distinct)(numbers) > 1:
        numbers = numbers // 2
        turns += 1
    return turns, numbers


def batch(rng, lanes):
    return (rng.integers(0, 40, (lanes, 4), dtype=np.int32),)


def twin(numbers):
    turns = 0
    while len(set(numbers)) > 1:
        numbers = numbers // 2
        turns += 1
    return turns, numbers
