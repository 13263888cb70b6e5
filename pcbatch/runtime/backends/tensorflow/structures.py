"""Structures of values as pieces see them: their types and leaves, and a user's arguments as tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.types import NONE, ConflictError, StructType, TensorType, Type, casts_into, join
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.interop import as_numpy, is_foreign, is_tracer, with_numpy
from pcbatch.runtime.backends.tensorflow import private
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


# -- arguments ---------------------------------------------------------------------------------------------------------
# A user's arguments as tensors, and the type of one example of a batch.


def as_arrays(value: Any, example: bool = False) -> Any:
    """`value` with tensors as leaves.

    Tuples, dicts, records and lists of arrays or of structures are structures; lists of numbers are
    arrays; None stays. In one `example` a list of scalar tensors is a structure too.

    Python ints become int32, floats float32; NumPy arrays, tensors and variables keep their dtypes. Raises TypeError
    for what is no array.
    """
    return _map(_tensor, value, 0 if example else 1)


def structure_of(value: Any) -> Type:
    """The type of a structure of tensors, whatever their shapes, each standing for a scalar."""
    return type_of(_map(_scalar, value))


def example_type(value: Any) -> Type:
    """The type of one example of `value`, a structure of tensors `[lanes, ...]`; TypeError where a leaf has no axis."""
    return type_of(_map(_stand_in, value))


def as_type(value: Any, type_: Type) -> Any:
    """One example's `value` with tensors of exactly `type_` as leaves; zeros for None, a gradient of no operation."""
    pairs = zip(values.flatten(type_, value), leaf_types(type_), strict=True)
    leaves = [tf.zeros(leaf.shape, leaf.dtype) if each is None else each for each, leaf in pairs]
    return values.pack(type_, leaf_tensors(values.pack(type_, leaves), type_))


_ARRAYS = (tf.Tensor, tf.Variable)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """`value`, a structure, with `function` of each of its tensors and variables."""
    return _map(lambda leaf: function(tf.convert_to_tensor(leaf)) if isinstance(leaf, _ARRAYS) else leaf, value)


def as_python(error: Exception) -> Exception:
    """Return the Python error for one of eager TensorFlow on numbers that are tensors; other errors as they are."""
    if isinstance(error, tf.errors.InvalidArgumentError):
        if "division by zero" in error.message:
            return ZeroDivisionError("integer division or modulo by zero")
        if "out of bounds" in error.message:
            return IndexError(f"index out of range: {error.message}")
    return error


def _is_reachable(graph: Any) -> bool:
    """Return whether code that is traced now may use tensors of `graph`: the current graph, or one around it."""
    current = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while current is not None and current is not graph:
        current = private.around(current)
    return current is graph


_ONE_LENGTH = (
    "rows of a batch may have other lengths, as lists, arrays or a tf.RaggedTensor, but only along their first axis; "
    "what all lanes share has one length"
)


def _tensor(value: Any) -> tf.Tensor:
    is_composite = isinstance(value, private.composite_types()) and not isinstance(value, tf.Variable)
    if is_composite or isinstance(value, tf.TensorArray):
        help = _ONE_LENGTH if isinstance(value, tf.RaggedTensor) else "pass tensors, such as tf.sparse.to_dense(x)"
        raise TypeError(f"not an array but {describe(value)}; {help}")
    if is_tracer(value):
        raise TypeError(
            "a tracer of JAX, which has no value yet: call it outside of jax.jit, jax.grad and jax.vmap; or inside by "
            "jax.pure_callback; or export it, f.export(path, ..), and call pcbatch.exported.load(path).call(..) there"
        )
    if tf.is_symbolic_tensor(value) and not _is_reachable(value.graph):
        raise TypeError("a tensor of another graph has no value here; return it from the tf.function that made it")
    try:
        return _converted(value)
    except Exception as error:  # whatever an object of the user's raises that poses as an array
        ragged = f"; {_ONE_LENGTH}" if "non-rectangular" in str(error) or _has_rows(value) else ""
        why = str(error).strip().partition("\n")[0].rstrip(".")
        if "unsupported type" in why and not isinstance(value, (list, np.ndarray)):
            raise TypeError(f"not an array but {describe(value)}") from None
        raise TypeError(f"not an array: {why}{ragged}") from None


def _has_rows(value: Any) -> bool:
    """Return whether an argument has lists, tuples or arrays in it, which are not of one shape then."""
    is_outer = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object)
    return is_outer and any(isinstance(each, list | tuple | np.ndarray) for each in value)


def _converted(value: Any) -> tf.Tensor:
    """`value` as a tensor, arrays of other libraries as a whole: TensorFlow would take them element by element."""
    if is_foreign(value) and not isinstance(value, _ARRAYS):
        try:
            return tf.convert_to_tensor(as_numpy(value))
        except (TypeError, ValueError):  # a dtype that NumPy has not, such as PyTorch's bfloat16
            return tf.identity(tf.experimental.dlpack.from_dlpack(value.__dlpack__()))  # not the memory of the other
    if isinstance(value, list) and is_foreign(_first(value)):
        return tf.convert_to_tensor(with_numpy(value))
    if isinstance(value, float):
        return tf.constant(with_sign(value), tf.float64 if isinstance(value, np.float64) else tf.float32)
    return tf.convert_to_tensor(value)


def _first(value: Any) -> Any:
    """The first number of nested lists."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _scalar(tensor: tf.Tensor) -> np.ndarray:
    if tensor.dtype == tf.string:
        raise TypeError("a lane has numbers, no text; pass character codes, `[ord(c) for c in text]`")
    if tensor.dtype in (tf.variant, tf.resource):
        raise TypeError(f"a lane has numbers, not what a tensor of {tensor.dtype.name} stands for")
    return _blank(tensor.dtype, ())


@functools.lru_cache(maxsize=1024)
def _blank(dtype: tf.DType, shape: tuple[int, ...]) -> np.ndarray:
    """An array that takes no memory, always the same: calls with many arrays ask for many."""
    return np.broadcast_to(np.zeros((), dtype.as_numpy_dtype), shape)


def _stand_in(tensor: tf.Tensor) -> np.ndarray:
    """An array like one example of `tensor` that takes no memory."""
    if tensor.shape.rank == 0:
        raise TypeError(
            "a scalar has no batch axis; pass an array with one entry for each lane, or share it between lanes with "
            "in_axes={..: None}; for one example alone call `.single(..)`"
        )
    if not tensor.shape[1:].is_fully_defined():
        raise TypeError(f"the shape of an example must be static, not {tensor.shape[1:]}")
    return _blank(tensor.dtype, tuple(tensor.shape[1:]))


def _is_part(item: Any, rank: int) -> bool:
    """Return whether this item makes its list a structure: an array of rank `rank` or more does."""
    match item:
        case list():
            return any(_is_part(each, rank) for each in item)
        case dict() | None:
            return True
        case tuple():
            return hasattr(item, "_fields") or any(_is_part(each, rank) for each in item)
        case tf.Tensor() | tf.Variable() | np.ndarray() | np.generic():
            return len(item.shape) >= rank
    if is_foreign(item):
        return len(item.shape) >= rank
    return values.fields_of(item) is not None


def _map(function: Callable[[Any], Any], value: Any, rank: int = 0) -> Any:
    """`value` with `function` of each of its leaves. An empty list is one in a structure, and an array by itself."""

    def part(item: Any) -> Any:
        return [] if isinstance(item, list) and not item else _map(function, item, rank)

    match value:
        case tuple() if not hasattr(value, "_fields"):
            return tuple(map(part, value))
        case list() if any(_is_part(item, rank) for item in value):
            return [*map(part, value)]
        case dict():
            return {key: part(item) for key, item in value.items()}
        case None:
            return None
    fields = values.fields_of(value)
    if fields is None:
        return function(value)
    return values.made(type(value), {name: part(item) for name, item in fields.items()})
