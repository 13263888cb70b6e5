"""`a[order]`: arrays of positions as indices, as NumPy has them: each takes an element, together they go pairwise."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.ir.slices import Window
from pcbatch.runtime.backends.tensorflow.recorder import fault
from pcbatch.runtime.backends.tensorflow.weak import Weak, is_lane_value

_ARRAYS = (tf.Tensor, tf.Variable, np.ndarray)


def is_positions(part: Any) -> bool:
    """Return whether a part of an index is an array: of positions, or a mask."""
    return isinstance(part, list) or (isinstance(part, _ARRAYS) and len(part.shape) > 0)


def of_arrays(a: tf.Tensor, parts: list[Any], site: int) -> tf.Tensor:
    """`a` at an index for each axis of which some are arrays; a position that is not there is a fault at `site`."""
    parts = [_as_array(part) if isinstance(part, list) else part for part in parts]
    if not any(is_lane_value(part) for part in parts) and not any(isinstance(part, Window) for part in parts):
        return _of_known(a, tuple(parts))
    taken = [place for place, part in enumerate(parts) if not isinstance(part, slice) and part is not None]
    if any(isinstance(part, Window) for part in parts) or taken != [*range(taken[0], taken[-1] + 1)]:
        raise TypeError("arrays among several indices stand side by side, without a slice of a lane's bounds between")
    fixed = [slice(None) if place in taken else part for place, part in enumerate(parts)]
    first = sum(not isinstance(part, Window) for part in parts[: taken[0]])
    a = a[tuple(fixed)]
    sizes = a.shape[first : first + len(taken)].as_list()
    positions = [_in_range(parts[place], size, site) for place, size in zip(taken, sizes, strict=True)]
    pairs = zip(positions[1:], sizes[1:], strict=True)
    flat = functools.reduce(lambda so_far, pair: so_far * pair[1] + pair[0], pairs, positions[0])
    if len(taken) > 1:
        a = tf.reshape(a, [*a.shape[:first], math.prod(sizes), *a.shape[first + len(taken) :]])
    if 0 in sizes:  # every lane that comes here has failed
        return tf.zeros([*a.shape[:first], *flat.shape, *a.shape[first + 1 :]], a.dtype)
    return tf.gather(a, flat, axis=first)


def _as_array(part: list[Any]) -> Any:
    """A list of positions as an array, `[i, j]` of a lane's numbers as a tensor."""
    if not any(map(is_lane_value, part)):
        return np.asarray(part)
    numbers = [tf.convert_to_tensor(each.value if isinstance(each, Weak) else each) for each in part]
    is_wide = any(each.dtype == tf.int64 for each in numbers)
    return tf.stack([tf.cast(each, tf.int64) if is_wide and each.dtype.is_integer else each for each in numbers])


def _of_known(a: tf.Tensor, parts: tuple[Any, ...]) -> tf.Tensor:
    """`a[parts]` where all of these are known."""
    places = np.arange(a.shape.num_elements()).reshape(a.shape)[parts]
    return tf.gather(tf.reshape(a, [-1]), places)


def _in_range(part: Any, size: int, site: int) -> tf.Tensor:
    """Positions, int32, counted from the front and clamped."""
    positions = tf.convert_to_tensor(part.value if isinstance(part, Weak) else part)
    if positions.dtype == tf.bool:
        raise masked()
    if not positions.dtype.is_integer:
        raise TypeError(f"an index is an int, not {positions.dtype.name}; write int(i), or tf.cast(i, tf.int32)")
    positions = tf.cast(positions, tf.int32 if positions.dtype.size < 4 or positions.dtype == tf.int32 else tf.int64)
    fault(tf.reduce_any((positions < -size) | (positions >= size)), site)
    positions = tf.where(positions < 0, positions + size, positions)
    return tf.cast(tf.clip_by_value(positions, 0, max(size - 1, 0)), tf.int32)


def masked() -> PieceRefusalError:
    """Return the refusal of an array indexed by a mask."""
    return PieceRefusalError(
        "PCB407",
        "an array indexed by a mask has a length that differs from lane to lane",
        "keep the whole array and choose within it: `np.sum(np.where(mask, a, 0.0))` for `a[mask].sum()`, "
        "`np.max(np.where(mask, a, -np.inf))`; count with np.sum(mask)",
    )
