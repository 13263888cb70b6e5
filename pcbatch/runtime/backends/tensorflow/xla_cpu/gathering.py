"""Reading rows of a large array, on CPU without the threads that XLA would start for it.

XLA reckons that a gather which it has fused with other work reads the whole array. From 512 KiB on it splits the few
rows that are read between threads, and starting those takes far longer than reading: 64 lanes that read one element of
10,000 each take 2 to 9 us instead of 0.3. Of an array that is updated, however, it counts only the update. So large
arrays are read as if their first element had just been written over itself, at a place that XLA cannot know. The update
is fused with the gather: no array is made, an element that is read is compared with that place, and that is all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private, xla_cpu
from pcbatch.runtime.costs.device import CPU

# -- gathering ---------------------------------------------------------------------------------------------------------

# -- block guards ------------------------------------------------------------------------------------------------------
# The choice of a guard that XLA's CPU compiler runs without copies: a conditional, or a loop of at most one turn.
#
# The arm of a conditional that does nothing copies what it passes on: arrays that the other arm computes anew, and
# those of which it writes elements onto themselves. For a few small ones that is all but free. But many of them cost as
# much as a block that runs (the sampler, 25 arrays of 25 KB in some blocks and 64 chains: 30 s under "earliest", with
# loops 6.6), and so do the bytes of large ones (512 lanes with 128 floats on a stack and in two registers: 60 us a
# trip, with loops 29). From 1 MiB on a copy is split between threads even where nothing moves: 4 us for each block that
# does not run. A loop's state stays where it is. In a block that runs a loop costs up to 0.4 us more, so a few small
# arrays keep conditionals.


def would_copy(arrays: Sequence[tf.Tensor], in_place: Sequence[bool]) -> bool:
    """Return whether a conditional that passes on `arrays`, some written `in_place`, would spend its time copying.

    Arrays of a length not known yet, the stacks of a run that may enlarge them, count as large. On a GPU a loop would
    make the host wait for its condition twice: never there.
    """
    if not xla_cpu.applies():
        return False
    if in_place.count(False) > CPU.few_copied:
        return True
    limits = [CPU.split_copy if stays else CPU.copied for stays in in_place]
    return any(graphs.bytes_of(array) >= limit for array, limit in zip(arrays, limits, strict=True))


# -- gathering ---------------------------------------------------------------------------------------------------------


def unsplit(array: tf.Tensor, indices: tf.Tensor) -> tf.Tensor:
    """`array`, to be read at `indices` (int32 of any shape, none of them negative), by one thread."""
    update = private.update_slice()
    if update is None or not xla_cpu.applies() or not is_split(array) or indices.shape.num_elements() == 0:
        return array
    if tf.is_symbolic_tensor(array) and array.op.type == "Reshape":  # also counts as reading everything
        return tf.reshape(unsplit(array.op.inputs[0], indices), array.shape)
    # By the indices themselves: what does not depend on them could be moved out of a loop, where it would be a copy.
    # Of what has a length that is not known here, there may be none.
    some = tf.reshape(indices, [-1])
    is_never = some[0] == -1 if indices.shape.is_fully_defined() else tf.reduce_any(some[:1] == -1)
    here = tf.cast(is_never, tf.int32)
    rank, sizes = array.shape.rank, array.shape.as_list()
    longest = max(range(rank), key=lambda axis: float("inf") if sizes[axis] is None else sizes[axis])
    first = tf.slice(array, [0] * rank, [1] * rank) if None not in sizes else array[(slice(1),) * rank]
    return update(array, first, tf.stack([here if axis == longest else 0 for axis in range(rank)]))


def is_split(array: tf.Tensor) -> bool:
    """Return whether XLA might split reading from an array of this shape, maybe not fully known, between threads.

    A bool array counts as one that it would not: `unsplit` needs numbers.
    """
    if not xla_cpu.is_on() or array.dtype == tf.bool:
        return False
    return graphs.bytes_of(array) >= CPU.split_read


def gather_by_lane(array: tf.Tensor, lanes: tf.Tensor, indices: list[tf.Tensor]) -> tf.Tensor:
    """`array[lane, i, j, ..]` for the rows of int32 `lanes` and `indices`, `[n]` each, all within the array."""
    if not indices:
        # Of long rows most readers want an element, and then no rows are made: but not of what seems just written.
        is_long = None in array.shape[1:] or math.prod(array.shape[1:]) > CPU.long_row
        return tf.gather(array if is_long else unsplit(array, lanes), lanes)
    if 0 in (rest := array.shape[1 + len(indices) :].as_list()):  # TensorFlow refuses to read nothing
        count = lanes.shape[0] if lanes.shape[0] is not None else tf.shape(lanes)[0]
        return tf.zeros([count, *rest], array.dtype)
    return tf.gather_nd(unsplit(array, indices[0]), tf.stack([lanes, *indices], axis=-1))


# -- products ----------------------------------------------------------------------------------------------------------
# Products with a matrix that all lanes share, and sums of rows, as XLA's CPU compiler computes them fastest.

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
