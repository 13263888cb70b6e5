"""Lists of arrays, in which loops inside opaque calls collect their turns' results: their form in XLA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import flop_estimate
from pcbatch.runtime.backends.tensorflow.unrolled_values import static


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
