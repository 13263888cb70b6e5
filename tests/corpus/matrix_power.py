"""A matrix as parameter, local and result of a recursion: power by squaring."""

import numpy as np
import tensorflow as tf

import pcbatch

DTYPES = ("float32",)


@pcbatch.autobatch
def matrix_power(matrix, n):
    if n == 0:
        return tf.eye(2)
    half = matrix_power(matrix, n // 2)
    if n % 2 == 0:
        return half @ half
    return half @ half @ matrix


def batch(rng, lanes):
    return rng.uniform(-1, 1, (lanes, 2, 2)).astype(np.float32), rng.integers(0, 7, lanes, dtype=np.int32)


def twin(matrix, n):
    return np.linalg.matrix_power(matrix.astype(np.float64), n)
