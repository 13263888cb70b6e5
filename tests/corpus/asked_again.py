"""A condition that is asked again when it is known already, and a counter that counts for nobody."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32",)


@pcbatch.autobatch
def asked_again(n, k):
    steps = 0
    total = 0
    while n > 0:
        odd = n % 2 == 1
        if odd:
            total = total + tf.abs(k)
        if odd:
            k = tf.abs(k) - 3
        n = n // 2
        steps = steps + 1
    return total


def batch(rng, lanes):
    return rng.integers(0, 200, lanes, dtype=np.int32), rng.integers(-9, 9, lanes, dtype=np.int32)


def twin(n, k):
    total = 0
    for digit in reversed(bin(n)[2:]):
        if n and digit == "1":
            total += abs(k)
            k = abs(k) - 3
    return total
