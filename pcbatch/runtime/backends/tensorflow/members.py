"""Members of NumPy's arrays that TensorFlow's tensors lack, `x.T`, `x.sum()`, `x.reshape(2, 3)`, for values of a lane.

The methods are NumPy's functions of the same names (`numpy_equivalents`), which say what dtypes they give.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.numpy_equivalents import EQUIVALENTS
from pcbatch.runtime.backends.tensorflow.weak import DOUBLE, INT, Weak, is_lane_value


def member(value: Any, name: str) -> Any:
    """`value.name`, of a lane's number or array as of a NumPy array."""
    if not is_lane_value(value) or (name not in MEMBERS_OF_LANES and hasattr(value, name)):
        return getattr(value, name)
    array = value.value if isinstance(value, Weak) else tf.convert_to_tensor(value)
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name](array)
    return functools.partial(_METHODS[name], array) if name in _METHODS else getattr(value, name)


def _shape(given: tuple[Any, ...]) -> Any:
    """`2, 3` or `(2, 3)`, as a method takes a shape or axes."""
    if len(given) != 1 or isinstance(given[0], int) or getattr(given[0], "shape", None) == ():
        return list(given)
    return given[0]


def _reshape(x: tf.Tensor, *shape: Any) -> tf.Tensor:
    return tf.reshape(x, _shape(shape))


def _transpose(x: tf.Tensor, *axes: Any) -> tf.Tensor:
    return EQUIVALENTS["transpose"](x, _shape(axes) if axes and axes[0] is not None else None)


def _astype(x: tf.Tensor, dtype: Any, copy: bool = True) -> tf.Tensor:
    """Python's `int` and `float` are what they are in a lane: int32 and float32."""
    wanted = {int: tf.int32, float: tf.float32}.get(dtype) or tf.as_dtype(dtype)
    return tf.cast(x, wanted)


def _number(x: tf.Tensor) -> Any:
    """One element as a Python number, which is weak."""
    if x.dtype == tf.bool or x.dtype.is_complex:
        return x
    return Weak(tf.cast(x, INT if x.dtype.is_integer else DOUBLE))


def _item(x: tf.Tensor, *at: int) -> Any:
    if at:
        return _number(tf.reshape(x, [-1])[at[0]] if len(at) == 1 else x[at])
    if x.shape.num_elements() != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return _number(tf.reshape(x, []))


def _tolist(x: tf.Tensor) -> Any:
    return [_tolist(row) for row in tf.unstack(x)] if x.shape.rank else _number(x)


def _number_of_axes(x: tf.Tensor) -> int:
    return int(x.shape.rank)


def _size(x: tf.Tensor) -> int:
    return int(x.shape.num_elements())


_ATTRIBUTES: dict[str, Callable[[tf.Tensor], Any]] = {
    "T": tf.transpose,
    "imag": tf.math.imag,
    "ndim": _number_of_axes,
    "real": tf.math.real,
    "size": _size,
}
_SAME = frozenset(
    {"all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min"}
    | {"prod", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "trace", "var"}
)
"""The methods that are the functions of their names."""
_METHODS: dict[str, Callable[..., Any]] = {name: EQUIVALENTS[name] for name in _SAME} | {
    "astype": _astype,
    "conj": tf.math.conj,
    "copy": tf.identity,
    "flatten": EQUIVALENTS["ravel"],
    "item": _item,
    "reshape": _reshape,
    "tolist": _tolist,
    "transpose": _transpose,
}
MEMBERS_OF_LANES = frozenset({*_ATTRIBUTES, *_METHODS})
"""The names of all, which are `pcbatch.ir.joins.MEMBERS`."""
