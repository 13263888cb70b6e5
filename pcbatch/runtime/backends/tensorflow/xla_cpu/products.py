"""Products with a matrix that all lanes share, and sums of rows, as XLA's CPU compiler computes them fastest."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, xla_cpu
from pcbatch.runtime.costs.device import CPU

_FLOATS = (tf.float32, tf.float64)


# Products of the lanes' rows with one matrix that all lanes share, without turning the matrix over in every trip.
#
# XLA's CPU compiler multiplies a few rows by a matrix as it lies in memory with kernels that read it once; where the
# matrix is to be transposed it packs all of it anew for each product. A logistic regression of 1,000 observations and
# 25 weights takes 1.4 us in place of 7 for the logits of 4 lanes, 4 in place of 8 for those of 16. So the matrix is
# transposed once, before the loop in which it is used.


def times_transposed(rows: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """`rows`, `[m, k]`, times the transpose of `matrix`, `[n, k]`."""
    if _are_few(rows) and tf.is_symbolic_tensor(matrix) and xla_cpu.applies():
        source = graphs.source(matrix)
        if source.graph is not tf.compat.v1.get_default_graph():
            with source.graph.as_default(), tf.name_scope("transposed"):
                turned = tf.transpose(source)
            return tf.matmul(rows, turned)
    return tf.matmul(rows, matrix, transpose_b=True)


def _are_few(rows: tf.Tensor) -> bool:
    count = rows.shape[0]
    return count is not None and count <= CPU.few_rows


# Sums of a lane's numbers, of which XLA's CPU compiler adds one after the other, and each waits for the one before.
#
# In native code they are products with ones: a leaf of the sampler in 100 dimensions, with two sums, takes 0.91 of the
# time so. In lockstep a product would round otherwise in batches of other sizes; there four parts of a row are added as
# vectors first. The gradients of a logistic regression of 1,000 x 25 take 0.95 to 0.97 of the time so, all included.


def product(operation: Any, array: tf.Tensor) -> tf.Tensor | None:
    """The sum that an operation makes of an array, if it is one of all its numbers and they are many; else None."""
    numbers = array.shape.num_elements()
    if operation.type != "Sum" or numbers is None or numbers < CPU.native_sum or array.dtype not in _FLOATS:
        return None
    if not xla_cpu.applies() or operation.outputs[0].shape.rank != 0:
        return None
    row = tf.reshape(array, (1, numbers))
    return tf.squeeze(tf.linalg.matvec(row, tf.ones((numbers,), array.dtype)), axis=0)


def of_rows(operation: Any, array: tf.Tensor) -> tf.Tensor | None:
    """The sums `[lanes]` of long rows `[lanes, n]`, if an operation on one row is its sum; else None."""
    shape = array.shape
    if operation.type != "Sum" or shape.rank != 2 or operation.outputs[0].shape.rank != 0 or not xla_cpu.applies():
        return None
    if array.dtype not in _FLOATS or shape[1] is None or shape[1] < CPU.quartered:
        return None
    length = -(-shape[1] // 4)
    first, second, third = (array[:, place * length : (place + 1) * length] for place in range(3))
    last = tf.pad(array[:, 3 * length :], [(0, 0), (0, 4 * length - shape[1])])
    return tf.reduce_sum((first + second) + (third + last), axis=1)
