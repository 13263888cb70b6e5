"""The order imposed on XLA's CPU compiler: short work in one thread, and reads before writes.

Of kernels that could run at once it hands half to another thread as soon as there are more than eight. The last kernels
of a block, which write a variable each, all become ready together. Where they are short the other thread costs more
than it helps: the arrays move from core to core, and a thread that looks for work slows down its neighbour (sampler, 64
lanes of 100 numbers: 1.4 s of CPU time instead of 0.9, 5% of the wall time). So of such writes every few wait for one
before, by a condition that always holds, which XLA cannot know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, raw_ops, xla_cpu
from pcbatch.runtime.costs.device import CPU


def in_succession(
    where: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
    masks: Sequence[tf.Tensor],
    new: Sequence[tf.Tensor],
    old: Sequence[tf.Tensor],
) -> list[tf.Tensor]:
    """`where(mask, new, old)` for each, one after the other where that is faster."""
    if not xla_cpu.applies() or len(old) <= CPU.written_at_once or not all(map(_is_short, old)):
        return [where(*each) for each in zip(masks, new, old, strict=True)]
    found: list[tf.Tensor] = []
    each = [*zip(masks, new, old, strict=True)]
    for first in range(0, len(each), CPU.written_at_once):
        some = each[first : first + CPU.written_at_once]
        if found:
            is_there = _always(found[-1])
            some = [(raw_ops.both(mask, is_there), value, before) for mask, value, before in some]
        found += [where(*one) for one in some]
    return found


def once_there(mask: tf.Tensor, arrays: Sequence[tf.Tensor]) -> tf.Tensor:
    """`mask`, bool `[rows]`, once all of `arrays`, `[rows, ..]`, are there.

    XLA writes rows of an array in place, if all that reads what was there before comes first for a reason: else it
    copies the whole array, twice for each run of a block (64 tokens of 256 numbers for each of 256 lanes: 0.9 ms).
    """
    if not xla_cpu.applies():
        return mask
    for array in arrays:
        if 0 not in array.shape:
            mask = raw_ops.both(mask, _always(array))
    return mask


def _is_short(array: tf.Tensor) -> bool:
    return 0 < graphs.bytes_of(array) <= CPU.short_write


def _always(array: tf.Tensor) -> tf.Tensor:
    """True for every lane, once `array` (`[lanes, ..]`) is there: no integer's minimum with 0 is above 0."""
    matrix = (-1, math.prod(array.shape[1:]))
    first = array if array.shape.rank == 1 else raw_ops.first_column(raw_ops.reshape(array, matrix))
    if first.dtype.is_floating:
        first = raw_ops.bitcast(first, {2: tf.int16, 4: tf.int32, 8: tf.int64}[first.dtype.size])
    nothing = raw_ops.constant(0)
    return raw_ops.at_most(raw_ops.minimum(raw_ops.cast(first, tf.int32), nothing), nothing)
