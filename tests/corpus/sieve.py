"""Stores of truth values into an array that the function makes itself: the primes below n."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("int32", "bool")


@pcbatch.autobatch
def sieve(n):
    composite = tf.zeros([24], tf.bool)
    count = 0
    for i in range(2, n):
        if composite[i]:
            continue
        count += 1
        for j in range(i * i, n, i):
            composite[j] = True
    return count, composite


def batch(rng, lanes):
    return (rng.integers(0, 25, lanes, dtype=np.int32),)


def twin(n):
    composite = [any(k % d == 0 for d in range(2, k)) for k in range(n)] + [False] * (24 - n)
    return sum(not c for c in composite[2:n]), np.array(composite)
