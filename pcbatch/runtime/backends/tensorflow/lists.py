"""Lists of arrays, in which loops inside opaque calls collect their turns' results: their form in XLA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import flop_estimate

# -- unrolled values ---------------------------------------------------------------------------------------------------
# Loops written out: numbers that are known beforehand, such as counters, and the lists that loops collect results in.
#
# A list is a plain list here, of tensors, None where nothing was put yet; a number that is known is one of NumPy's.

Value = Any
"""A tensor of the graph, a number that is known, a list, or None for an entry that is not there yet."""


class Unexpandable(Exception):  # noqa: N818 (no error: what it is raised for stays as it is)
    """An operation that cannot be written out."""


def static(value: Value) -> Any:
    """The number that a value is, if it is known."""
    if isinstance(value, np.ndarray | np.generic):
        return value
    if not tf.is_tensor(value):
        return None
    known = tf.get_static_value(value)
    return folded(value.op, value.op.inputs) if known is None and value.op.type in _FOLDED else known


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda array, axis: function(array, axis=tuple(np.ravel(axis)))


_FOLDED: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Identity": np.asarray,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalNot": np.logical_not,
    "LogicalOr": np.logical_or,
    "Max": _reduced(np.max),
    "Maximum": np.maximum,
    "Min": _reduced(np.min),
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "NotEqual": np.not_equal,
    "Sub": np.subtract,
}
_SMALL = 16
"""Elements of constants that numbers are computed of beforehand."""


def folded(operation: Any, given: Sequence[Value]) -> Any:
    """The int or bool that an operation gives, if its inputs are known; None for all that is left to the graph."""
    dtypes = [tensor.dtype for tensor in (*operation.inputs, *operation.outputs)]
    if len(operation.outputs) != 1 or not all(dtype.is_integer or dtype.is_bool for dtype in dtypes):
        return None
    if operation.type == "Const":
        value = tf.get_static_value(operation.outputs[0])
        return value if value is not None and value.size <= _SMALL else None
    function = _FOLDED.get(operation.type)
    known = [static(each) for each in given]
    if function is None or any(each is None or each.size > _SMALL for each in known):
        return None
    found = np.asarray(function(*known), operation.outputs[0].dtype.as_numpy_dtype)
    return found if found.shape == operation.outputs[0].shape else None


# -- lists -------------------------------------------------------------------------------------------------------------

LISTS = frozenset(
    (
        "EmptyTensorList", "TensorListFromTensor", "TensorListGetItem", "TensorListLength", "TensorListPopBack",
        "TensorListPushBack", "TensorListReserve", "TensorListSetItem", "TensorListStack",
    )
)  # fmt: skip
MOST = 1024
"""Entries of a list."""


def listed(operation: Any, given: Sequence[Value]) -> list[Value]:
    """Return the results of an operation on lists; Unexpandable if the entries are not known."""
    match operation.type:
        case "EmptyTensorList":
            return [[]]
        case "TensorListReserve":
            return [[None] * _length(given[1])]
        case "TensorListFromTensor":
            array = given[0]
            if not tf.is_tensor(array) or array.shape.rank is None or array.shape[0] is None:
                raise Unexpandable
            return [list(tf.unstack(array)) if _within(array.shape[0]) else []]
    entries = given[0]
    if not isinstance(entries, list):
        raise Unexpandable
    match operation.type:
        case "TensorListLength":
            return [np.asarray(len(entries), np.int32)]
        case "TensorListGetItem":
            return [_there(entries[_place(given[1], entries)])]
        case "TensorListSetItem":
            place = _place(given[1], entries)
            return [[*entries[:place], given[2], *entries[place + 1 :]]]
        case "TensorListPushBack":
            return [[*entries, given[1]]]
        case "TensorListPopBack" if entries:
            return [entries[:-1], _there(entries[-1])]
        case "TensorListStack" if entries:
            return [tf.stack([_there(each) for each in entries])]
    raise Unexpandable


def _there(entry: Value) -> Value:
    if entry is None or isinstance(entry, list):
        raise Unexpandable
    return entry


def _length(value: Value) -> int:
    known = static(value)
    if known is None or int(known) < 0 or not _within(int(known)):
        raise Unexpandable
    return int(known)


def _within(length: int) -> bool:
    if length > MOST:
        raise Unexpandable
    return True


def _place(value: Value, entries: Sequence[Value]) -> int:
    known = static(value)
    if known is None or not 0 <= int(known) < len(entries):
        raise Unexpandable
    return int(known)


# -- lists -------------------------------------------------------------------------------------------------------------


def is_list(tensor: tf.Tensor) -> bool:
    """Return whether a tensor is a list of arrays."""
    return bool(tensor.dtype == tf.variant)


def are_bounded(operations: Iterable[Any], given: Mapping[int, int] | None = None) -> bool:
    """Return whether all lists that some operations make, in order, have known lengths, in inner functions, too.

    XLA refuses other lists, or gets them wrong. `given` are the lengths of lists from outside, by `id`.
    """
    lengths = dict(given or {})
    for operation in operations:
        if is_unbounded(operation, lengths):
            return False
        for body in flop_estimate.bodies(operation):
            outer = operation.inputs[len(operation.inputs) - len(body.inputs) :]
            pairs = zip(body.inputs, outer, strict=True)
            inside = {id(inner): lengths[id(each)] for inner, each in pairs if id(each) in lengths}
            if not are_bounded(body.get_operations(), inside):
                return False
        lengths.update(_lengths(operation, lengths))
    return True


def is_unbounded(operation: Any, lengths: Mapping[int, int] = MappingProxyType({})) -> bool:
    """Return whether an operation works on a list of unknown length; those of `lengths`, by `id`, are known."""
    match operation.type:
        case "EmptyTensorList" | "TensorListReserve":
            return _number(operation.inputs[1], lengths) is None
        case "TensorListLength":  # of a list that grows XLA gives the most that it may have
            return operation.inputs[0].op.type in ("EmptyTensorList", "TensorListPushBack", "TensorListPopBack")
        case "TensorListSetItem":
            return bool(operation.get_attr("resize_if_index_out_of_bounds"))
    return bool(operation.type == "TensorListResize")


def _number(tensor: tf.Tensor, lengths: Mapping[int, int]) -> int | None:
    """A length, if it is known: a number, or that of a list of `lengths`, as in the gradient of reading an entry."""
    if tensor.op.type == "TensorListLength":
        return lengths.get(id(tensor.op.inputs[0]))
    length = static(tensor)
    return None if length is None or length < 0 else int(length)


def _lengths(operation: Any, lengths: Mapping[int, int]) -> dict[int, int]:
    """The lengths of the lists that an operation returns, by `id`, where they are fixed."""
    match operation.type:
        case "TensorListFromTensor":
            shape = operation.inputs[0].shape
            found = [shape[0] if shape.rank else None]
        case "TensorListReserve":
            found = [_number(operation.inputs[1], lengths)]
        case "TensorListSetItem" | "Identity" | "ZerosLike" | "AddN":
            found = [lengths.get(id(operation.inputs[0]))]
        case "While" | "StatelessWhile":
            found = [lengths.get(id(tensor)) for tensor in operation.inputs]
        case _:
            return {}
    return {id(tensor): each for tensor, each in zip(operation.outputs, found, strict=True) if each is not None}
