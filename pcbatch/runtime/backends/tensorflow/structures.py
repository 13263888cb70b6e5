"""Structures of values as pieces see them: their types, and their leaves as tensors."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.types import NONE, ConflictError, StructType, TensorType, Type, casts_into, join
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.tensorflow.weak import Weak, commit, is_committed, is_number, weak, with_sign


class ShapeError(TypeError):
    """The shape of a lane's value is not known: it differs by lane, perhaps."""


class NotATensorError(TypeError):
    """A value that no variable of a batched program can hold: it may live inside a piece only."""


_SPELLINGS = {
    "all": "tf.reduce_all",
    "any": "tf.reduce_any",
    "array": "tf.convert_to_tensor",
    "cast": "tf.cast",
    "fill": "tf.fill",
    "function": "tf.function",
    "spec": "tf.TensorSpec",
    "vectorized_map": "tf.vectorized_map",
    "zeros_like": "tf.zeros_like",
}


def spelling(operation: str) -> str:
    """Return a TensorFlow user's spelling of an operation or a dtype; see `host.Host.spelling`."""
    return _SPELLINGS.get(operation) or f"tf.{tf.as_dtype(operation).name}"


def joined_type(a: Any, b: Any) -> Type:
    """Return the type that holds two values; TypeError, with a help, where there is none."""
    try:
        type_ = join(type_of(a), type_of(b))
    except ConflictError as error:
        raise TypeError(error.told(spelling)) from None
    assert type_ is not None  # only the join of two unknown types is unknown
    return type_


WEAK_FLOAT, WEAK_INT = TensorType("float64", (), True), TensorType("int32", (), True)


def type_of(value: Any) -> Type:
    """The type of a value of one example.

    Tensors, variables, Keras' own among them, and NumPy arrays keep their dtypes; Python ints and floats and `Weak` are
    weak. A gradient that names rows of a table (`tf.IndexedSlices`) counts as the table that it stands for, most of it
    zero. Raises NotATensorError for what is none of these, TypeError for tensors of unknown shape, ints beyond int32.
    """
    if isinstance(value, bool):
        return TensorType("bool")
    if is_number(value):
        if isinstance(value, float):
            return WEAK_FLOAT
        if isinstance(value, int) and -(2**31) <= value < 2**31:
            return WEAK_INT
        return TensorType(weak(value).value.dtype.name, (), weak=True)
    if is_committed(value) or isinstance(value, tf.IndexedSlices):
        return _tensor_type(value)
    if is_of_keras(value):
        return _tensor_type(value.value)
    match value:
        case None:
            return NONE
        case complex():
            return TensorType("complex64")
        case tuple() if not hasattr(value, "_fields"):
            return StructType("tuple", tuple(type_of(item) for item in value))
        case list():
            return StructType("list", tuple(type_of(item) for item in value))
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise NotATensorError("a dict whose keys are not all strings")
            return StructType("dict", tuple(type_of(item) for item in value.values()), tuple(value))
    fields = values.fields_of(value)
    if fields is None:
        raise NotATensorError(describe(value))
    return _record(value, fields)


def is_of_keras(value: Any) -> bool:
    """Return whether `value` is one of Keras' variables, which wrap one of TensorFlow's."""
    return hasattr(type(value), "__tf_tensor__") and isinstance(getattr(value, "value", None), tf.Variable)


def _record(value: Any, fields: dict[str, Any]) -> StructType:
    """The type of a record. NotATensorError for what only looks like one: an object with anything else inside."""
    try:
        items = tuple(type_of(item) for item in fields.values())
    except NotATensorError:
        if values.is_simple_class(type(value)):
            raise NotATensorError(describe(value)) from None
        raise
    return StructType(type(value).__name__, items, tuple(fields), type(value))


def _tensor_type(value: Any) -> TensorType:
    shape = value.shape
    if isinstance(shape, tf.TensorShape):
        if not shape.is_fully_defined():
            _type_of_array(value.dtype, ())  # refuses what is no number, whatever its shape
            raise ShapeError(
                f"the shape of a lane's value must be static, not {shape}; where lanes need different sizes "
                "take the largest, a constant; where TensorFlow does not know the shape write tf.ensure_shape(.., [..])"
            )
        shape = tuple(shape)
    return _type_of_array(value.dtype, shape)


@functools.lru_cache(maxsize=1024)
def _type_of_array(dtype: Any, shape: tuple[int, ...]) -> TensorType:
    """The type of a tensor or a NumPy array; calls with many arrays ask for the same ones again and again."""
    try:
        dtype = tf.as_dtype(dtype)
    except TypeError:
        raise NotATensorError(f"a NumPy array of {dtype}") from None
    if not (dtype.is_integer or dtype.is_floating or dtype.is_complex or dtype.is_bool):
        raise NotATensorError(f"a tensor of {dtype.name}")
    return TensorType(dtype.name, shape)


def describe(value: Any) -> str:
    """Describe `value` in words for an error."""
    if isinstance(value, str):
        return f"the string {value!r}"
    if isinstance(value, tf.GradientTape):
        return "a gradient tape"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def leaf_tensors(value: Any, type_: Type) -> list[tf.Tensor]:
    """The leaves of `value` as tensors of exactly the leaf types of `type_`, to which its own can be cast.

    Raises TypeError where a leaf does not fit.
    """
    leaves = values.flatten(type_, value)
    return [_leaf(leaf, t) for leaf, t in zip(leaves, leaf_types(type_), strict=True)]


def wrap(value: Any, type_: Type) -> Any:
    """`value`, a structure of tensors of `type_`, with its weak numbers as `Weak`."""
    leaves = values.flatten(type_, value)
    return values.pack(
        type_,
        [
            (weak(leaf) if is_number(leaf) else Weak(leaf)) if t.weak else leaf
            for t, leaf in zip(leaf_types(type_), leaves, strict=True)
        ],
    )


def _leaf(value: Any, type_: TensorType) -> tf.Tensor:
    dtype = tf.as_dtype(type_.dtype)
    if isinstance(value, complex):
        value = tf.constant(with_sign(value), dtype)
    tensor = commit(value, dtype) if is_number(value) else tf.convert_to_tensor(value)
    if tensor.dtype != dtype and casts_into(tensor.dtype.name, type_.dtype):
        tensor = tf.cast(tensor, dtype)
    if tensor.dtype != dtype or tuple(tensor.shape) != type_.shape:
        raise TypeError(f"{tensor.dtype.name}{tensor.shape} is not {type_}")
    return tensor
