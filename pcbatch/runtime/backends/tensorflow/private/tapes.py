"""Gradient tapes: their view, recording of operations, gradients and inputs of operations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow.private import lookup


def unrecorded() -> contextlib.AbstractContextManager[Any]:
    """Hide operations inside from all tapes."""
    record = lookup.find(lookup.RECORD)
    return contextlib.nullcontext() if record is None else record.stop_recording()


def may_record() -> bool:
    """Return whether a tape may see the operations that run now."""
    record = lookup.find(lookup.RECORD)
    return record is None or bool(record.could_possibly_record())


def is_unseen() -> bool:
    """Return whether calls run at once, and no tape may see them."""
    context, are_none = lookup.find(lookup.CONTEXT), lookup.find(lookup.NO_TAPES)
    if context is None or are_none is None:
        return tf.executing_eagerly() and not may_record()
    return bool(context().executing_eagerly() and are_none())


def is_watched(tensors: Sequence[tf.Tensor]) -> bool:
    """Return whether a tape watches one of `tensors`, and so records operations on them."""
    asked = getattr(lookup.find(lookup.RECORD), "should_record_backprop", None)
    return may_record() and (asked is None or bool(asked(list(tensors))))


def has_tangents(tensors: Sequence[tf.Tensor]) -> bool:
    """Return whether a `ForwardAccumulator` follows one of `tensors`; False where that cannot be asked."""
    packed = lookup.find(lookup.TANGENTS)
    return packed is not None and may_record() and bool(packed(list(tensors)).tangents)


def records() -> bool:
    """Return whether `record_as_one` works; otherwise `tf.custom_gradient` does the same, more slowly."""
    return lookup.find(lookup.RECORD) is not None


def record_as_one(
    name: str, outputs: Sequence[tf.Tensor], inputs: Sequence[tf.Tensor], gradient: Callable[..., Any]
) -> None:
    """Tell all tapes that `outputs` come from `inputs` by one operation."""
    lookup.needed(lookup.RECORD).record_operation(name, outputs, inputs, gradient)


def set_gradient(operation: Any, gradient: Callable[..., Any]) -> None:
    """Let `tf.gradients` take `gradient(*upstream)` for that of an operation, by all of its inputs."""
    operation._gradient_function = lambda _, *upstream: gradient(*upstream)


def has_own_gradient(operation: Any) -> bool:
    """Return whether an operation has a gradient of its own, as `tf.custom_gradient` gives it."""
    return "_gradient_op_type" in operation.node_def.attr or getattr(operation, "_gradient_function", None) is not None


def rewires() -> bool:
    """Return whether `update_input` works."""
    return hasattr(tf.Operation, "_update_input")


def update_input(operation: Any, place: int, tensor: tf.Tensor) -> None:
    """Let an operation read another tensor of its graph, of the same dtype."""
    operation._update_input(place, tensor)
