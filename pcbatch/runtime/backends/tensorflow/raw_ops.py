"""Operations on ready tensors, which the machine makes for every block, in a third of the time.

TensorFlow's functions look at every argument (what is it, has somebody a dispatcher for it, which dtype has the other
one), for three times as long as it takes to make the operation. Here dtypes agree, or TensorFlow's own check of the
finished operation raises; numbers are constants, of which a program that is traced (`reusing`) has one for each graph.
Outside of such programs TensorFlow's functions are called.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private

T = TypeVar("T")

LARGEST = 64
"""Elements of a constant that is made anew inside of a loop."""
_known: ContextVar[dict[Hashable, Any] | None] = ContextVar("known", default=None)


@contextlib.contextmanager
def reusing() -> Iterator[None]:
    """A program is traced inside: its constants are made once for each graph."""
    token = _known.set({})
    try:
        yield
    finally:
        _known.reset(token)


def in_program() -> bool:
    """Return whether a program is traced now, into a graph: nobody asks for its gradient."""
    return _known.get() is not None and not tf.executing_eagerly()


def once(key: Hashable, make: Callable[[], tf.Tensor]) -> tf.Tensor:
    """`make()`, which depends on nothing but `key` and reads nothing: the one of the present graph, if it has one."""
    return make() if tf.executing_eagerly() else once_in_program((tf.compat.v1.get_default_graph(), key), make)


def once_in_program(key: Hashable, make: Callable[[], T]) -> T:
    """The same of something that belongs to no graph."""
    known = _known.get()
    if known is None:
        return make()
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found


def constant(value: int | bool | tuple[Any, ...], dtype: tf.DType = tf.int32) -> tf.Tensor:
    """A constant of integers or bools, several as (nested) tuples."""
    return once(("constant", value, dtype), lambda: _constant(value, dtype))


def _constant(value: Any, dtype: tf.DType) -> tf.Tensor:
    if not in_program():
        return tf.constant(value, dtype)
    # Tuples of equal numbers are equal, and so are True and 1, but those of one dtype are one constant.
    proto = once_in_program(("proto", value, dtype), lambda: tf.make_tensor_proto(value, dtype))
    return _made("Const", (), dtype, value=tf.compat.v1.AttrValue(tensor=proto), dtype=type_attribute(dtype))


def constant_like(tensor: tf.Tensor) -> Callable[[], tf.Tensor] | None:
    """Return a maker of `tensor`'s value as a constant of the present graph, if it is a small constant of another."""
    if tensor.op.type != "Const" or (tensor.shape.num_elements() or 0) > LARGEST:
        return None
    return functools.partial(_constant_like, tensor)


def _constant_like(tensor: tf.Tensor) -> tf.Tensor:
    here = tf.compat.v1.get_default_graph()
    value = once_in_program(("value", tensor.ref()), lambda: tensor.op.get_attr("value"))
    attributes = {"value": tf.compat.v1.AttrValue(tensor=value), "dtype": type_attribute(tensor.dtype)}
    key = once_in_program(("key", tensor.ref()), value.SerializeToString)
    return once_in_program((here, "constant", key), lambda: _made("Const", (), tensor.dtype, **attributes))


def numbers(count: int) -> tf.Tensor:
    """int32 `[0, 1, .., count - 1]`."""
    return once(("numbers", count), lambda: tf.range(count, dtype=tf.int32))


def array(value: Any, dtype: str) -> tf.Tensor:
    """Convert as `tf.convert_to_tensor`, without its 20 us of checks for NumPy's arrays and variables."""
    if type(value) is np.ndarray:
        return tf.constant(value, dtype)
    if isinstance(value, tf.Variable) and value.dtype == dtype:
        return value.value()
    return tf.convert_to_tensor(value, dtype)


@functools.cache
def _kept_shape(sizes: tuple[int, ...]) -> tf.Tensor:
    return tf.constant(sizes, tf.int32)


def shape(sizes: tuple[int, ...]) -> tf.Tensor:
    """A shape as an int32 vector, in ordinary code the same one each time."""
    return _kept_shape(sizes) if tf.executing_eagerly() else tf.constant(sizes, tf.int32)


def placeholder(dtype: tf.DType, shape: tuple[int | None, ...]) -> tf.Tensor:
    """`tf.compat.v1.placeholder`, of a rank that is known."""
    attributes = {"dtype": type_attribute(dtype), "shape": tf.compat.v1.AttrValue(shape=_shape(shape))}
    return _made("Placeholder", (), dtype, **attributes)


# -- operations --------------------------------------------------------------------------------------------------------


def select(mask: tf.Tensor, new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
    """`tf.where`."""
    if not _in_graph(mask, new, old):
        return tf.where(mask, new, old)
    return _made("SelectV2", (mask, new, old), new.dtype, T=type_attribute(new.dtype))


def equal(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """`a == b`."""
    if not _in_graph(a, b):
        return tf.equal(a, b)
    return _made("Equal", (a, b), tf.bool, T=type_attribute(a.dtype), incompatible_shape_error=_TRUE)


def less(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """`a < b`."""
    return _made("Less", (a, b), tf.bool, T=type_attribute(a.dtype)) if _in_graph(a, b) else tf.less(a, b)


def at_most(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """`a <= b`."""
    return _made("LessEqual", (a, b), tf.bool, T=type_attribute(a.dtype)) if _in_graph(a, b) else tf.less_equal(a, b)


def minimum(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """`tf.minimum`."""
    return _made("Minimum", (a, b), a.dtype, T=type_attribute(a.dtype)) if _in_graph(a, b) else tf.minimum(a, b)


def add(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """`a + b`."""
    return _made("AddV2", (a, b), a.dtype, T=type_attribute(a.dtype)) if _in_graph(a, b) else tf.add(a, b)


def both(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """`a & b` of bools."""
    return _made("LogicalAnd", (a, b), tf.bool) if _in_graph(a, b) else tf.logical_and(a, b)


def cast(array: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """`tf.cast`."""
    if not _in_graph(array) or array.dtype == dtype or array.dtype.is_complex:
        return tf.cast(array, dtype)
    return _made("Cast", (array,), dtype, SrcT=type_attribute(array.dtype), DstT=type_attribute(dtype), Truncate=_FALSE)


def bitcast(array: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """`tf.bitcast`."""
    if not _in_graph(array):
        return tf.bitcast(array, dtype)
    return _made("Bitcast", (array,), dtype, T=type_attribute(array.dtype), type=type_attribute(dtype))


def first_column(matrix: tf.Tensor) -> tf.Tensor:
    """`matrix[:, 0]`."""
    if not _in_graph(matrix):
        return matrix[:, 0]
    bounds = (constant((0, 0)), constant((0, 1)), constant((1, 1)))
    attributes = {"T": type_attribute(matrix.dtype), "Index": type_attribute(tf.int32)}
    masks = {"begin_mask": integer_attribute(1), "end_mask": integer_attribute(1)}
    shrunk = {"shrink_axis_mask": integer_attribute(2)}
    return _made("StridedSlice", (matrix, *bounds), matrix.dtype, **attributes, **masks, **shrunk)


def product(matrix: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
    """`matrix @ column`."""
    if not _in_graph(matrix, column):
        return tf.matmul(matrix, column)
    return _made("MatMul", (matrix, column), matrix.dtype, T=type_attribute(matrix.dtype))


def reshape(array: tf.Tensor, shape: tuple[int, ...]) -> tf.Tensor:
    """`array` with a shape that is known, but for one length at most, -1."""
    if not _in_graph(array):
        return tf.reshape(array, shape)
    types = {"T": type_attribute(array.dtype), "Tshape": type_attribute(tf.int32)}
    return _made("Reshape", (array, constant(shape)), array.dtype, **types)


def part(array: tf.Tensor, starts: tf.Tensor, sizes: tuple[int, ...]) -> tf.Tensor:
    """`tf.slice`."""
    if not _in_graph(array, starts):
        return tf.slice(array, starts, sizes)
    types = {"T": type_attribute(array.dtype), "Index": type_attribute(tf.int32)}
    return _made("Slice", (array, starts, constant(sizes)), array.dtype, **types)


def expanded(array: tf.Tensor) -> tf.Tensor:
    """`array` with an axis of length 1 after the first."""
    if not _in_graph(array):
        return tf.expand_dims(array, 1)
    types = {"T": type_attribute(array.dtype), "Tdim": type_attribute(tf.int32)}
    return _made("ExpandDims", (array, constant(1)), array.dtype, **types)


def stack(scalars: Sequence[tf.Tensor]) -> tf.Tensor:
    """The vector of some scalars of one dtype."""
    if not _in_graph(*scalars):
        return tf.stack(scalars)
    dtype = scalars[0].dtype
    counts = {"N": integer_attribute(len(scalars)), "axis": integer_attribute(0)}
    return _made("Pack", scalars, dtype, T=type_attribute(dtype), **counts)


def unstack(vector: tf.Tensor, count: int) -> list[tf.Tensor]:
    """The `count` scalars of a vector."""
    if not _in_graph(vector):
        return tf.unstack(vector, count)
    attributes = {"T": type_attribute(vector.dtype), "num": integer_attribute(count), "axis": integer_attribute(0)}
    graph = tf.compat.v1.get_default_graph()
    return list(private.operation(graph, "Unpack", (vector,), [vector.dtype] * count, attributes))


def _in_graph(*operands: Any) -> bool:
    """Return whether a program is traced and all operands are tensors: other operations may concern tapes."""
    return in_program() and all(isinstance(operand, tf.Tensor) for operand in operands)


def _made(kind: str, inputs: Sequence[tf.Tensor], dtype: tf.DType, /, **attributes: Any) -> tf.Tensor:
    (output,) = private.operation(tf.compat.v1.get_default_graph(), kind, inputs, [dtype], attributes)
    return output


# -- attributes --------------------------------------------------------------------------------------------------------


@functools.cache
def type_attribute(dtype: tf.DType) -> Any:
    """A dtype, as operations have it."""
    return tf.compat.v1.AttrValue(type=dtype.as_datatype_enum)


def types_attribute(dtypes: Sequence[tf.DType]) -> Any:
    """Several."""
    found = tf.compat.v1.AttrValue()
    found.list.type.extend(dtype.as_datatype_enum for dtype in dtypes)
    return found


def shapes_attribute(shapes: Sequence[tuple[int | None, ...]]) -> Any:
    """Shapes."""
    found = tf.compat.v1.AttrValue()
    found.list.shape.extend(map(_shape, shapes))
    return found


@functools.cache
def integer_attribute(value: int) -> Any:
    """An integer."""
    return tf.compat.v1.AttrValue(i=value)


def integers_attribute(values: Sequence[int]) -> Any:
    """An attribute that is a list of numbers."""
    return tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(i=values))


@functools.cache
def _shape(shape: tuple[int | None, ...]) -> Any:
    return tf.TensorShape(shape).as_proto()


_TRUE, _FALSE = tf.compat.v1.AttrValue(b=True), tf.compat.v1.AttrValue(b=False)
