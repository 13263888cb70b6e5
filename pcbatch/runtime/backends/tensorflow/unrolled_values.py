"""Loops written out: numbers that are known beforehand, such as counters, and the lists that loops collect results in.

A list is a plain list here, of tensors, None where nothing was put yet; a number that is known is one of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

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
