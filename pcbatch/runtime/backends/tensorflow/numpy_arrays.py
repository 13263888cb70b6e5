"""NumPy's functions of whole arrays, for values of lanes: making, arranging, sorting, searching and taking.

See `numpy_equivalents`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.arithmetic import widened
from pcbatch.runtime.backends.tensorflow.indexing import getitem
from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact, summands, truth
from pcbatch.runtime.backends.tensorflow.weak import FLOAT, INT, carrier, is_lane_value, is_number, unify


def made(x: Any, dtype: Any = None) -> tf.Tensor:
    """`x` as a tensor, of `dtype` if there is one; Python's `int` and `float` are what they are in a lane."""
    if dtype is None:
        return array(x)
    wanted = tf.as_dtype({int: INT, float: FLOAT}.get(dtype, dtype))
    if not any(map(is_lane_value, tf.nest.flatten(x))):  # at once: 0.1 is no float32 on its way
        return tf.constant(np.asarray(x).astype(wanted.as_numpy_dtype))
    if isinstance(x, (list, tuple)):
        return tf.stack([made(each, wanted) for each in x])
    return tf.cast(carrier(x) if is_lane_value(x) else array(x), wanted)


def _axes(axis: Any) -> list[int]:
    """An axis or some, and sizes likewise, as a list."""
    return list(axis) if isinstance(axis, (list, tuple, tf.TensorShape)) else [axis]


def _like(fill: Callable[[tf.Tensor], tf.Tensor]) -> Equivalent:
    return lambda a, dtype=None: made(fill(array(a)), dtype)


def _full(shape: Any, fill_value: Any, dtype: Any = None) -> tf.Tensor:
    return tf.fill(_axes(shape), made(fill_value, dtype))


def _ravel(a: Any) -> tf.Tensor:
    return tf.reshape(array(a), [-1])


def _flip(a: Any, axis: int | None = None) -> tf.Tensor:
    x = array(a)
    return tf.reverse(x, list(range(x.shape.rank)) if axis is None else _axes(axis))


def _roll(a: Any, shift: int, axis: int | None = None) -> tf.Tensor:
    x = array(a)
    return tf.reshape(tf.roll(_ravel(x), shift, 0), x.shape) if axis is None else tf.roll(x, shift, axis)


def _reshape(a: Any, shape: Any) -> tf.Tensor:
    return tf.reshape(array(a), _axes(shape))


def _swapaxes(a: Any, axis1: int, axis2: int) -> tf.Tensor:
    x = array(a)
    order = list(range(x.shape.rank))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(x, order)


def _transpose(a: Any, axes: Any = None) -> tf.Tensor:
    x = array(a)
    return tf.transpose(x, None if axes is None else [axis % x.shape.rank for axis in axes])


def _moveaxis(a: Any, source: Any, destination: Any) -> tf.Tensor:
    x = array(a)
    sources, places = ([axis % x.shape.rank for axis in _axes(each)] for each in (source, destination))
    order = [axis for axis in range(x.shape.rank) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return tf.transpose(x, order)


def _expand_dims(a: Any, axis: Any) -> tf.Tensor:
    x, axes = array(a), _axes(axis)
    rank = x.shape.rank + len(axes)
    for each in sorted(each % rank for each in axes):
        x = tf.expand_dims(x, each)
    return x


def _repeat(a: Any, repeats: Any, axis: int | None = None) -> tf.Tensor:
    x, axis = (_ravel(a), 0) if axis is None else (array(a), axis)
    if is_lane_value(repeats):
        raise TypeError("np.repeat of a lane's values must know how often; sizes are constants")
    return tf.gather(x, np.repeat(np.arange(x.shape[axis]), repeats), axis=axis)


def _tile(a: Any, reps: Any) -> tf.Tensor:
    x, times = array(a), [reps] if isinstance(reps, int) else list(reps)
    missing = len(times) - x.shape.rank
    x = tf.reshape(x, [1] * max(missing, 0) + x.shape.as_list())
    return tf.tile(x, [1] * max(-missing, 0) + times)


def _diag(v: Any, k: int = 0) -> tf.Tensor:
    x = array(v)
    return tf.linalg.diag(x, k=k) if x.shape.rank == 1 else tf.linalg.diag_part(x, k=k)


def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> tf.Tensor:
    """Return the diagonals of the matrices along two axes, by default the first ones as in NumPy."""
    return tf.linalg.diag_part(_moveaxis(a, (axis1, axis2), (-2, -1)), k=offset)


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> tf.Tensor:
    return tf.reduce_sum(summands(_diagonal(a, offset, axis1, axis2)), -1)


def _triangle(a: Any, k: int, holds: Callable[[Any, Any], Any]) -> tf.Tensor:
    x = array(a)
    x = tf.tile(x[None], [x.shape[0], 1]) if x.shape.rank == 1 else x
    rows, columns = tf.range(x.shape[-2])[:, None], tf.range(x.shape[-1])[None, :]
    return tf.where(holds(columns - rows, k), x, tf.zeros_like(x))


def _pieces(arrays: Any) -> list[tf.Tensor]:
    """Arrays that are joined, of one dtype if they are ints."""
    found = [array(each) for each in arrays]
    for each in found:
        if each.dtype.is_integer:
            found = [widened(other, each)[0] if other.dtype.is_integer else other for other in found]
    return found


def _concatenate(arrays: Any, axis: int | None = 0) -> tf.Tensor:
    found = _pieces(arrays)
    return tf.concat([tf.reshape(each, [-1]) for each in found] if axis is None else found, axis or 0)


def _vstack(arrays: Any) -> tf.Tensor:
    return tf.concat([each[None] if each.shape.rank < 2 else each for each in _at_least_1d(arrays)], 0)


def _hstack(arrays: Any) -> tf.Tensor:
    found = _at_least_1d(arrays)
    return tf.concat(found, 0 if found[0].shape.rank == 1 else 1)


def _column_stack(arrays: Any) -> tf.Tensor:
    return tf.concat([each[:, None] if each.shape.rank < 2 else each for each in _at_least_1d(arrays)], 1)


def _at_least_1d(arrays: Any) -> list[tf.Tensor]:
    return [each if each.shape.rank else each[None] for each in _pieces(arrays)]


def _append(a: Any, values: Any, axis: int | None = None) -> tf.Tensor:
    x = array(a)
    added = made(values, x.dtype) if is_number(values) else array(values)
    return _concatenate([x, added], axis)


def _pad(a: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> tf.Tensor:
    x = array(a)
    if isinstance(pad_width, int):
        pad_width = [[pad_width, pad_width]] * x.shape.rank
    elif isinstance(pad_width[0], int):
        pad_width = [list(pad_width)] * x.shape.rank
    if mode in ("edge", "wrap"):
        for axis, width in enumerate(pad_width):
            places: Any = np.pad(np.arange(x.shape[axis]), width, mode)  # type: ignore[call-overload]
            x = tf.gather(x, places, axis=axis)
        return x
    if mode not in ("constant", "reflect", "symmetric"):
        raise TypeError("np.pad of a lane's values has the modes constant, edge, reflect, symmetric and wrap")
    if array(constant_values).shape.rank:
        raise TypeError("np.pad of a lane's values is filled with one number")
    filled = {"constant_values": made(constant_values, x.dtype)} if mode == "constant" else {}
    return tf.pad(x, pad_width, mode.upper(), **filled)


def _broadcast_to(a: Any, shape: Any) -> tf.Tensor:
    return tf.broadcast_to(array(a), _axes(shape))


ARRANGING: dict[str, Equivalent] = {
    "array": made,
    "asarray": made,
    "append": _append,
    "atleast_1d": lambda a: _at_least_1d([a])[0],
    "broadcast_to": _broadcast_to,
    "column_stack": _column_stack,
    "concatenate": _concatenate,
    "copy": lambda a: tf.identity(array(a)),
    "diag": _diag,
    "diagonal": _diagonal,
    "expand_dims": _expand_dims,
    "flip": _flip,
    "fliplr": lambda a: _flip(a, 1),
    "flipud": lambda a: _flip(a, 0),
    "full": _full,
    "full_like": lambda a, fill_value, dtype=None: _full(array(a).shape.as_list(), fill_value, dtype or array(a).dtype),
    "hstack": _hstack,
    "moveaxis": _moveaxis,
    "ones_like": _like(tf.ones_like),
    "pad": _pad,
    "ravel": _ravel,
    "repeat": _repeat,
    "reshape": _reshape,
    "roll": _roll,
    "squeeze": lambda a, axis=None: tf.squeeze(array(a), axis),
    "stack": lambda arrays, axis=0: tf.stack(_pieces(arrays), axis),
    "swapaxes": _swapaxes,
    "tile": _tile,
    "trace": _trace,
    "transpose": _transpose,
    "tril": lambda a, k=0: _triangle(a, k, operator.le),
    "triu": lambda a, k=0: _triangle(a, k, operator.ge),
    "vstack": _vstack,
    "zeros_like": _like(tf.zeros_like),
}


# -- order and places --------------------------------------------------------------------------------------------------


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
