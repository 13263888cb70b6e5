"""NumPy's functions of order and places, for values of lanes: sorting, searching, taking; see `numpy_equivalents`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.indexing import getitem
from pcbatch.runtime.backends.tensorflow.numpy_arrays import made
from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact, truth
from pcbatch.runtime.backends.tensorflow.weak import is_lane_value, unify

POSITIONS = tf.int64
"""The dtype of places in arrays, NumPy's."""


def _sort(a: Any, axis: int | None = -1, kind: Any = None) -> tf.Tensor:
    """Sort along an axis, NaN after infinity."""
    x = array(a)
    x, axis = (tf.reshape(x, [-1]), 0) if axis is None else (x, axis % x.shape.rank)
    if x.dtype == tf.bool:
        return tf.cast(tf.sort(tf.cast(x, tf.int32), axis), tf.bool)
    if not x.dtype.is_floating:
        return tf.sort(x, axis)
    lost = tf.math.is_nan(x)
    numbers = tf.sort(tf.where(lost, tf.constant(math.inf, x.dtype), x), axis)
    count = tf.reduce_sum(tf.cast(lost, tf.int32), axis=axis, keepdims=True)
    places = tf.reshape(tf.range(x.shape[axis]), [-1] + [1] * (x.shape.rank - axis - 1))
    return tf.where(places >= x.shape[axis] - count, tf.constant(math.nan, x.dtype), numbers)


_BITS = {tf.float32: tf.int32, tf.float64: tf.int64}


def _keys(x: tf.Tensor) -> tf.Tensor:
    """Ints in the order of `x`, NaN after infinity: the bits of floats, those of negative ones turned over."""
    if not x.dtype.is_floating:
        return tf.cast(x, tf.int32) if x.dtype == tf.bool else x
    wide = x if x.dtype in _BITS else tf.cast(x, tf.float32)
    wide = tf.where(tf.equal(wide, 0), tf.zeros_like(wide), wide)  # -0.0 is 0.0
    bits = tf.bitcast(wide, _BITS[wide.dtype])
    ordered = tf.where(bits < 0, tf.bitwise.bitwise_xor(bits, tf.constant(bits.dtype.max, bits.dtype)), bits)
    return tf.where(tf.math.is_nan(wide), tf.constant(bits.dtype.max, bits.dtype), ordered)


def _argsort(a: Any, axis: int | None = -1, kind: Any = None) -> tf.Tensor:
    """Equal ones stay in order, as with NumPy's `kind="stable"`."""
    x = array(a)
    x, axis = (tf.reshape(x, [-1]), 0) if axis is None else (x, axis)
    return tf.cast(tf.argsort(_keys(x), axis, stable=True), POSITIONS)


def _searchsorted(a: Any, v: Any, side: str = "left") -> tf.Tensor:
    """Count the numbers of the vector `a` below each of `v` (for side "right", not above it); NaN is above all."""
    vector, values, _ = unify(array(a), array(v))
    values = tf.expand_dims(values, -1)
    smaller = (tf.less if side == "left" else tf.less_equal)(vector, values)
    if values.dtype.is_floating:
        lost = tf.math.is_nan(values)
        smaller |= lost & ~tf.math.is_nan(vector) if side == "left" else lost
    return tf.reduce_sum(tf.cast(smaller, POSITIONS), axis=-1)


def _digitize(x: Any, bins: Any, right: bool = False) -> tf.Tensor:
    """Bins increase or, as their ends say, decrease."""
    edges, side = array(bins), "left" if right else "right"
    if edges.shape[0] < 2:
        return _searchsorted(edges, x, side)
    turned = edges.shape[0] - _searchsorted(tf.reverse(edges, [0]), x, side)
    return tf.where(edges[0] > edges[-1], turned, _searchsorted(edges, x, side))


def _in_order(a: Any, axis: int | None) -> tuple[tf.Tensor, int]:
    """Numbers in order, NaN everywhere where one is among them, and the axis."""
    x = inexact(array(a))
    x, axis = (tf.reshape(x, [-1]), 0) if axis is None else (x, axis % x.shape.rank)
    if x.shape[axis] == 0:  # nothing: a NaN
        return tf.fill([*x.shape[:axis], 1, *x.shape[axis + 1 :]], tf.constant(math.nan, x.dtype)), axis
    is_lost = tf.reduce_any(tf.math.is_nan(x), axis=axis, keepdims=True)
    return tf.where(is_lost, tf.constant(math.nan, x.dtype), _sort(x, axis)), axis


def _median(a: Any, axis: int | None = None) -> tf.Tensor:
    """The middle one; of two the mean."""
    ordered, axis = _in_order(a, axis)
    count = ordered.shape[axis]
    low, high = (tf.gather(ordered, place, axis=axis) for place in ((count - 1) // 2, count // 2))
    return (low + high) / 2 if count % 2 == 0 else high


def _quantile(a: Any, q: Any, axis: int | None = None) -> tf.Tensor:
    """Interpolate between neighbours in order; NaN where one is among the numbers, or `q` is not between 0 and 1."""
    if isinstance(q, list | tuple | np.ndarray) and np.ndim(q):
        return tf.stack([_quantile(a, each, axis) for each in q])
    x, axis = _in_order(a, axis)
    last = x.shape[axis] - 1
    place = made(q, x.dtype) * last
    if place.shape.rank:
        raise TypeError("a quantile of a lane's values takes one q; call it once for each")
    below = tf.clip_by_value(tf.cast(tf.floor(place), tf.int32), 0, last)
    low = tf.gather(x, below, axis=axis)
    high = tf.gather(x, tf.minimum(below + 1, last), axis=axis)
    part = place - tf.cast(below, x.dtype)
    found = tf.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part))  # infinite or not
    found = tf.where(tf.equal(high, low), low, found)  # of two infinities, too
    return tf.where((place < 0) | (place > last), tf.constant(math.nan, x.dtype), found)


def _percentile(a: Any, q: Any, axis: int | None = None) -> tf.Tensor:
    return _quantile(a, (array(q) if is_lane_value(q) else np.asarray(q)) / 100, axis)


def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(truth(a), POSITIONS), axis=axis, keepdims=keepdims)


def take(a: Any, indices: Any, axis: int | None = None, *, site: int) -> Any:
    """`a` at some positions along an axis, or of all its elements; one that is not there is a fault at `site`."""
    if not is_lane_value(a) and not is_lane_value(indices):
        return np.take(a, indices, axis)
    x = array(a)
    x, axis = (tf.reshape(x, [-1]), 0) if axis is None else (x, axis % x.shape.rank)
    return getitem(x, (*[slice(None)] * axis, indices), site)


SORTING: dict[str, Equivalent] = {
    "argsort": _argsort,
    "count_nonzero": _count_nonzero,
    "digitize": _digitize,
    "median": _median,
    "percentile": _percentile,
    "quantile": _quantile,
    "searchsorted": _searchsorted,
    "sort": _sort,
}
