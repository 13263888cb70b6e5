"""`a[i]` where `i` may differ from lane to lane: a gather that cannot raise, its range check recorded."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.weak import Weak


def getitem(a: Any, index: Any, site: int) -> Any:
    """`a[index]` as Python and NumPy mean it: negative indices count from the end.

    A lane's index out of range is a fault at `site`; what it reads then is junk. Constant indices out of range raise
    IndexError at once. Structures (tuples, dicts, ..) take constant indices only. Slices need constant bounds.
    """
    if isinstance(a, Weak):
        raise TypeError("a number has no elements")
    lane_index = any(_varies(part) for part in _parts(index))
    if isinstance(a, np.ndarray) and lane_index:
        a = tf.convert_to_tensor(a)
    if isinstance(a, (tf.Tensor, tf.Variable)):
        return _element(tf.convert_to_tensor(a), index, site)
    if lane_index:
        raise TypeError(f"a {type(a).__name__} takes constant indices only; write tf.stack(..)[i] to index by lane")
    return a[index]


def _parts(index: Any) -> list[Any]:
    """Everything inside an index that may be a lane's value."""
    match index:
        case tuple():
            return [part for item in index for part in _parts(item)]
        case slice():
            return [index.start, index.stop, index.step]
    return [index]


def _varies(part: Any) -> bool:
    return isinstance(part, (Weak, tf.Tensor, tf.Variable))


def _element(a: tf.Tensor, index: Any, site: int) -> tf.Tensor:
    parts = _expand(index if isinstance(index, tuple) else (index,), a.shape)
    fixed: list[Any] = []  # the index with a full slice for each lane index
    lane_indices: list[tuple[int, tf.Tensor]] = []  # axis of a[fixed] and index, in order
    sizes = iter(a.shape)
    axis = 0
    for part in parts:
        if part is None:
            fixed.append(None)
            axis += 1
            continue
        size = next(sizes)
        if isinstance(part, slice):
            _refuse_lane_bounds(part)
            fixed.append(part)
            axis += 1
        elif _varies(part):
            fixed.append(slice(None))
            lane_indices.append((axis, _in_range(part, size, site)))
            axis += 1
        else:
            fixed.append(_constant(part, size))
    if any(part != slice(None) for part in fixed):
        a = a[tuple(fixed)]
    return _gather(a, lane_indices) if lane_indices else a


def _expand(parts: tuple[Any, ...], shape: tf.TensorShape) -> list[Any]:
    """`parts` with the ellipsis and missing trailing axes spelled out as full slices."""
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    if taken > shape.rank:
        raise IndexError(f"too many indices: {taken} for an array of rank {shape.rank}")
    missing = [slice(None)] * (shape.rank - taken)
    where = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    rest = parts[where + 1 :]
    if any(part is Ellipsis for part in rest):
        raise IndexError("an index can have only one ellipsis ('...')")
    return [*parts[:where], *missing, *rest]


def _refuse_lane_bounds(part: slice) -> None:
    if any(_varies(bound) for bound in (part.start, part.stop, part.step)):
        raise TypeError("slice bounds must be constants; for a moving window write tf.gather(a, start + tf.range(k))")


def _constant(part: Any, size: int) -> int:
    if isinstance(part, (bool, np.bool_)) or not isinstance(part, (int, np.integer)):
        kind = type(part).__name__
        raise TypeError(f"an index is an int, a slice, None or ..., not {kind}; write tf.gather or tf.where")
    if not -size <= part < size:
        raise IndexError(f"index {part} is out of range for an axis of length {size}")
    return int(part)


def _in_range(part: Any, size: int, site: int) -> tf.Tensor:
    """A lane's index, made safe: counted from the front and clamped; out of range is a fault."""
    position = tf.convert_to_tensor(part)
    if position.shape.rank != 0:
        raise TypeError("an index that differs by lane is a scalar; for an array of them write tf.gather(a, indices)")
    if not position.dtype.is_integer:
        raise TypeError(f"an index is an int, not {position.dtype.name}; write int(i)")
    position = tf.cast(position, tf.int32 if position.dtype.size < 4 or position.dtype == tf.int32 else tf.int64)
    fault((position < -size) | (position >= size), site)
    position = tf.where(position < 0, position + size, position)
    return tf.cast(tf.clip_by_value(position, 0, max(size - 1, 0)), tf.int32)


def _gather(a: tf.Tensor, lane_indices: list[tuple[int, tf.Tensor]]) -> tf.Tensor:
    """`a` at one position of each of some axes. Adjacent axes are merged first, so that an element costs an element."""
    axes = [axis for axis, _ in lane_indices]
    if 0 in (a.shape[axis] for axis in axes):  # every index is out of range: the lanes have failed, the result is junk
        return tf.zeros([size for axis, size in enumerate(a.shape) if axis not in axes], a.dtype)
    first, count = axes[0], len(axes)
    if axes == list(range(first, first + count)):
        merged = a.shape[first : first + count].as_list()
        pairs = zip(merged, (position for _, position in lane_indices), strict=True)
        flat = functools.reduce(lambda so_far, pair: so_far * pair[0] + pair[1], pairs, tf.constant(0))
        if count > 1:
            a = tf.reshape(a, [*a.shape[:first], math.prod(merged), *a.shape[first + count :]])
        return tf.gather(a, flat if count > 1 else lane_indices[0][1], axis=first)
    for axis, position in reversed(lane_indices):
        a = tf.gather(a, position, axis=axis)
    return a
