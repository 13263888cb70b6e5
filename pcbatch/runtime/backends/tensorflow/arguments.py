"""A user's arguments as tensors, and the type of one example of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.types import Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.interop import as_numpy, is_foreign, is_tracer, with_numpy
from pcbatch.runtime.backends.tensorflow import private, structures
from pcbatch.runtime.backends.tensorflow.weak import with_sign


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
    return structures.type_of(_map(_scalar, value))


def example_type(value: Any) -> Type:
    """The type of one example of `value`, a structure of tensors `[lanes, ...]`; TypeError where a leaf has no axis."""
    return structures.type_of(_map(_stand_in, value))


def as_type(value: Any, type_: Type) -> Any:
    """One example's `value` with tensors of exactly `type_` as leaves; zeros for None, a gradient of no operation."""
    pairs = zip(values.flatten(type_, value), leaf_types(type_), strict=True)
    leaves = [tf.zeros(leaf.shape, leaf.dtype) if each is None else each for each, leaf in pairs]
    return values.pack(type_, structures.leaf_tensors(values.pack(type_, leaves), type_))


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
        raise TypeError(f"not an array but {structures.describe(value)}; {help}")
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
            raise TypeError(f"not an array but {structures.describe(value)}") from None
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
