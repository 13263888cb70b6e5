"""A row that was read is a view: it shows what is stored into the matrix afterwards, as in NumPy."""

import numpy as np

import pcbatch

DTYPES = ("float32", "float32")


@pcbatch.autobatch
def row_then_store(matrix, i, n):
    row = matrix[i]
    for k in range(n):
        matrix[i, k] = row[k] + row[0]
    return matrix, row


def batch(rng, lanes):
    matrices = rng.normal(size=(lanes, 2, 3)).astype(np.float32)
    return matrices, rng.integers(0, 2, lanes, dtype=np.int32), rng.integers(0, 4, lanes, dtype=np.int32)


def twin(matrix, i, n):
    first = matrix[i, 0] * (2 if n > 0 else 1)
    matrix[i, 1:n] += first
    matrix[i, 0] = first
    return matrix, matrix[i]
