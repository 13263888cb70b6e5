"""Lists of arrays, in which loops inside opaque calls collect what each turn gives: what XLA compiles of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import work


def is_list(tensor: tf.Tensor) -> bool:
    """Whether a tensor is a list of arrays."""
    return bool(tensor.dtype == tf.variant)


def is_unbounded(operation: Any) -> bool:
    """Whether an operation is one on a list of a length that is not known, which XLA refuses or gets wrong."""
    match operation.type:
        case "EmptyTensorList" | "TensorListReserve":
            length = tf.get_static_value(operation.inputs[1])
            return length is None or bool(length < 0)
        case "TensorListLength":  # of a list that grows XLA gives the most that it may have
            return operation.inputs[0].op.type in ("EmptyTensorList", "TensorListPushBack", "TensorListPopBack")
        case "TensorListSetItem":
            return bool(operation.get_attr("resize_if_index_out_of_bounds"))
    return bool(operation.type == "TensorListResize")


def are_bounded(operations: Iterable[Any]) -> bool:
    """Whether there is no such operation among some, functions that they run included."""
    return all(
        not is_unbounded(operation) and all(are_bounded(body.get_operations()) for body in work.bodies(operation))
        for operation in operations
    )
