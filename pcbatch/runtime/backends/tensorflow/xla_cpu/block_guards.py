"""The choice of a guard that XLA's CPU compiler runs without copies: a conditional, or a loop of at most one turn.

The arm of a conditional that does nothing copies what it passes on: arrays that the other arm computes anew, and those
of which it writes elements onto themselves. For a few small ones that is all but free. But many of them cost as much as
a block that runs (the sampler, 25 arrays of 25 KB in some blocks and 64 chains: 30 s under "earliest", with loops 6.6),
and so do the bytes of large ones (512 lanes with 128 floats on a stack and in two registers: 60 us a trip, with loops
29). From 1 MiB on a copy is split between threads even where nothing moves: 4 us for each block that does not run. A
loop's state stays where it is. In a block that runs a loop costs up to 0.4 us more, so a few small arrays keep
conditionals.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, xla_cpu
from pcbatch.runtime.costs.device import CPU


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


def in_turn(arrays: Sequence[tf.Tensor]) -> bool:
    """Return whether XLA's CPU runtime runs kernels on such arrays one after the other."""
    return xla_cpu.applies() and all(graphs.bytes_of(array) <= CPU.in_turn for array in arrays)
