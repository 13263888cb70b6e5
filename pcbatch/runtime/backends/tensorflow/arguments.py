"""A user's arguments as tensors, and the type of one example of a batch."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.types import Type, leaves
from pcbatch.runtime import values
from pcbatch.runtime.backends.tensorflow import structures


def as_arrays(value: Any) -> Any:
    """`value` with tensors as leaves: tuples, dicts, named tuples and dataclasses are structures, lists are arrays.

    Python ints become int32, floats float32; NumPy arrays, tensors and variables keep their dtypes. Raises TypeError
    for what is no array.
    """
    return _map(_tensor, value)


def example_type(value: Any) -> Type:
    """The type of one example of `value`, a structure of tensors `[lanes, ...]`; TypeError where a leaf has no axis."""
    return structures.type_of(_map(_stand_in, value))


def spread(value: Any, type_: Type, lanes: Any) -> Any:
    """`value`, a structure of `type_`, repeated for every lane."""
    repeated = []
    for leaf, leaf_type in zip(values.flatten(type_, value), leaves(type_), strict=True):
        tensor = tf.convert_to_tensor(leaf, leaf_type.dtype)
        repeated.append(tf.broadcast_to(tensor, [lanes, *leaf_type.shape]))
    return values.pack(type_, repeated)


def as_type(value: Any, type_: Type) -> Any:
    """One example's `value` with tensors of exactly `type_` as leaves."""
    return values.pack(type_, structures.leaf_tensors(value, type_))


def store_element(array: Any, indices: Any, value: Any) -> tf.Tensor:
    """`array` with `array[indices] = value`, negative indices counting from the end; IndexError out of range."""
    array = tf.convert_to_tensor(array)
    place = []
    for index, size in zip(indices if isinstance(indices, tuple) else (indices,), array.shape, strict=False):
        number = operator.index(index)
        if not -size <= number < size:
            raise IndexError(f"index {number} is out of range for an axis of {size}")
        place.append(number % size)
    element = tf.convert_to_tensor(value, array.dtype)
    return tf.tensor_scatter_nd_update(array, [place], element[None])


def _rounded(value: Any, digits: int | None = None) -> Any:
    """`round` of one example's value: an int without digits, as Python."""
    number = value.numpy() if isinstance(value, tf.Tensor) else value
    return round(float(number)) if digits is None else tf.convert_to_tensor(round(float(number), digits), value.dtype)


PLAIN_BUILTINS: dict[str, Callable[..., Any]] = {
    "divmod": lambda a, b: (a // b, a % b),
    "round": lambda value, digits=None: (
        _rounded(value, digits) if isinstance(value, tf.Tensor) else round(value, digits)
    ),
}
"""Built-ins that tensors do not support though numbers do, for plain Python on one example."""


def _tensor(value: Any) -> tf.Tensor:
    try:
        return tf.convert_to_tensor(value)
    except (ValueError, tf.errors.InvalidArgumentError) as error:
        raise TypeError(f"not an array: {error}") from None


def _stand_in(tensor: tf.Tensor) -> np.ndarray:
    """An array like one example of `tensor` that takes no memory."""
    if tensor.shape.rank == 0:
        raise TypeError(
            "a scalar has no batch axis; pass an array with one entry for each lane, or share it between lanes with "
            "in_axes={..: None}"
        )
    if not tensor.shape[1:].is_fully_defined():
        raise TypeError(f"the shape of an example must be static, not {tensor.shape[1:]}")
    return np.broadcast_to(np.zeros((), tensor.dtype.as_numpy_dtype), tensor.shape[1:])


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    match value:
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*(_map(function, item) for item in value))
        case tuple():
            return tuple(_map(function, item) for item in value)
        case dict():
            return {key: _map(function, item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{f.name: _map(function, getattr(value, f.name)) for f in dataclasses.fields(value)}
        )
    return function(value)
