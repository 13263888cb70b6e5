"""NumPy's functions of whole arrays, for values of lanes: reductions and arranging; see `numpy_equivalents`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_elementwise import Equivalent, array, inexact, truth
from pcbatch.runtime.backends.tensorflow.promotion import widened
from pcbatch.runtime.backends.tensorflow.weak import carrier, is_lane_value, is_number

# -- reductions --------------------------------------------------------------------------------------------------------


def _reduction(function: Callable[..., tf.Tensor], of: Callable[[tf.Tensor], tf.Tensor] = tf.identity) -> Equivalent:
    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
        return function(of(array(a)), axis=axis, keepdims=keepdims)

    return reduced


def _numbers(x: tf.Tensor) -> tf.Tensor:
    return tf.cast(x, tf.int64) if x.dtype == tf.bool else x


def _position(function: Callable[..., tf.Tensor]) -> Equivalent:
    """The place of the first NaN, if there is one; of the extreme otherwise."""

    def position(a: Any, axis: int | None = None) -> tf.Tensor:
        x = array(a)
        x, axis = (tf.reshape(x, [-1]), 0) if axis is None else (x, axis)
        found = function(x, axis=axis)
        if not x.dtype.is_floating:
            return found
        lost = tf.math.is_nan(x)
        return tf.where(tf.reduce_any(lost, axis=axis), tf.argmax(tf.cast(lost, tf.int32), axis=axis), found)

    return position


def _cumulative(function: Callable[..., tf.Tensor]) -> Equivalent:
    def cumulated(a: Any, axis: int | None = None) -> tf.Tensor:
        x = _numbers(array(a))
        return function(tf.reshape(x, [-1]) if axis is None else x, axis=axis or 0)

    return cumulated


def _average(a: Any, axis: Any = None, weights: Any = None) -> tf.Tensor:
    x = inexact(array(a))
    if weights is None:
        return tf.reduce_mean(x, axis=axis)
    heavy = made(weights, x.dtype)
    if axis is not None and heavy.shape.rank == 1:
        heavy = tf.reshape(heavy, [-1] + [1] * (x.shape.rank - axis % x.shape.rank - 1))
    heavy = tf.broadcast_to(heavy, x.shape)
    return tf.reduce_sum(x * heavy, axis=axis) / tf.reduce_sum(heavy, axis=axis)


def _spread(function: Callable[..., tf.Tensor]) -> Equivalent:
    """`np.std` and `np.var`, whose mean may be of fewer by `ddof`."""

    def spread(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> tf.Tensor:
        x = inexact(array(a))
        squares = tf.square(tf.abs(x - tf.reduce_mean(x, axis=axis, keepdims=True)))
        count = (x.shape.num_elements() or 0) // max(tf.reduce_sum(squares, axis=axis).shape.num_elements() or 1, 1)
        total = tf.reduce_sum(squares, axis=axis, keepdims=keepdims)
        return function(total / tf.constant(count - ddof, total.dtype))

    return spread


def _without_nan(function: Callable[..., tf.Tensor], worst: float) -> Equivalent:
    """A reduction that passes over NaN."""

    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
        x = array(a)
        x = tf.where(tf.math.is_nan(x), tf.constant(worst, x.dtype), x) if x.dtype.is_floating else x
        return function(x, axis=axis, keepdims=keepdims)

    return reduced


def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> tf.Tensor:
    x = inexact(array(a))
    there = tf.cast(~tf.math.is_nan(x), x.dtype)
    total = _without_nan(tf.reduce_sum, 0.0)(x, axis, keepdims=keepdims)
    return total / tf.reduce_sum(there, axis=axis, keepdims=keepdims)


REDUCTIONS: dict[str, Equivalent] = {
    "all": _reduction(tf.reduce_all, truth),
    "any": _reduction(tf.reduce_any, truth),
    "argmax": _position(tf.argmax),
    "argmin": _position(tf.argmin),
    "average": _average,
    "cumprod": _cumulative(tf.math.cumprod),
    "cumsum": _cumulative(tf.cumsum),
    "max": _reduction(tf.reduce_max),
    "mean": _reduction(tf.reduce_mean, inexact),
    "min": _reduction(tf.reduce_min),
    "nanmean": _nanmean,
    "nansum": _without_nan(tf.reduce_sum, 0.0),
    "prod": _reduction(tf.reduce_prod, _numbers),
    "ptp": lambda a, axis=None: tf.reduce_max(array(a), axis=axis) - tf.reduce_min(array(a), axis=axis),
    "std": _spread(tf.sqrt),
    "sum": _reduction(tf.reduce_sum, _numbers),
    "var": _spread(tf.identity),
}

# -- making and arranging arrays ---------------------------------------------------------------------------------------


def made(x: Any, dtype: Any = None) -> tf.Tensor:
    """`x` as a tensor, of `dtype` if there is one."""
    return array(x) if dtype is None else tf.cast(carrier(x) if is_lane_value(x) else array(x), dtype)


def _like(fill: Callable[[tf.Tensor], tf.Tensor]) -> Equivalent:
    return lambda a, dtype=None: made(fill(array(a)), dtype)


def _full(shape: Any, fill_value: Any, dtype: Any = None) -> tf.Tensor:
    return tf.fill(shape if isinstance(shape, (list, tuple)) else [shape], made(fill_value, dtype))


def _ravel(a: Any) -> tf.Tensor:
    return tf.reshape(array(a), [-1])


def _flip(a: Any, axis: int | None = None) -> tf.Tensor:
    x = array(a)
    return tf.reverse(x, list(range(x.shape.rank)) if axis is None else [axis])


def _roll(a: Any, shift: int, axis: int | None = None) -> tf.Tensor:
    x = array(a)
    return tf.reshape(tf.roll(_ravel(x), shift, 0), x.shape) if axis is None else tf.roll(x, shift, axis)


def _reshape(a: Any, shape: Any) -> tf.Tensor:
    return tf.reshape(array(a), shape)


def _swapaxes(a: Any, axis1: int, axis2: int) -> tf.Tensor:
    x = array(a)
    order = list(range(x.shape.rank))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(x, order)


def _moveaxis(a: Any, source: int, destination: int) -> tf.Tensor:
    x = array(a)
    order = [axis for axis in range(x.shape.rank) if axis != source % x.shape.rank]
    order.insert(destination % x.shape.rank, source % x.shape.rank)
    return tf.transpose(x, order)


def _repeat(a: Any, repeats: int, axis: int | None = None) -> tf.Tensor:
    return tf.repeat(_ravel(a) if axis is None else array(a), repeats, axis or 0)


def _tile(a: Any, reps: Any) -> tf.Tensor:
    x, times = array(a), [reps] if isinstance(reps, int) else list(reps)
    missing = len(times) - x.shape.rank
    x = tf.reshape(x, [1] * max(missing, 0) + x.shape.as_list())
    return tf.tile(x, [1] * max(-missing, 0) + times)


def _diag(v: Any, k: int = 0) -> tf.Tensor:
    x = array(v)
    return tf.linalg.diag(x, k=k) if x.shape.rank == 1 else tf.linalg.diag_part(x, k=k)


def _diagonal(a: Any, offset: int = 0) -> tf.Tensor:
    return tf.linalg.diag_part(array(a), k=offset)


def _triangle(a: Any, k: int, holds: Callable[[Any, Any], Any]) -> tf.Tensor:
    x = array(a)
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
    if mode not in ("constant", "reflect", "symmetric"):
        raise TypeError("np.pad of a lane's values has the modes constant, reflect and symmetric")
    filled = {"constant_values": made(constant_values, x.dtype)} if mode == "constant" else {}
    return tf.pad(x, pad_width, mode.upper(), **filled)


def _broadcast_to(a: Any, shape: Any) -> tf.Tensor:
    return tf.broadcast_to(array(a), shape)


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
    "expand_dims": lambda a, axis: tf.expand_dims(array(a), axis),
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
    "transpose": lambda a, axes=None: tf.transpose(array(a), axes),
    "tril": lambda a, k=0: _triangle(a, k, operator.le),
    "triu": lambda a, k=0: _triangle(a, k, operator.ge),
    "vstack": _vstack,
    "zeros_like": _like(tf.zeros_like),
}
