"""A whole row of a matrix replaced and read at an index of the lane, then one element of it changed in place."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32")


@pcbatch.autobatch
def row_store(matrix, vector, i):
    matrix[i] = vector + matrix[(i + 1) % 3]
    matrix[i, -1] *= 2.0
    return matrix, matrix[i]


def batch(rng, lanes):
    matrices = rng.normal(size=(lanes, 3, 2)).astype(np.float32)
    return matrices, rng.normal(size=(lanes, 2)).astype(np.float32), rng.integers(-3, 3, lanes, dtype=np.int32)


def twin(matrix, vector, i):
    row = (vector + np.roll(matrix, -1, axis=0)[i]) * [1, 2]
    return np.where(np.arange(3)[:, None] == i % 3, row, matrix), row
