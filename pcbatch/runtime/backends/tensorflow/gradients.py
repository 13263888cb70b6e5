"""Gradients: what takes them, and until there is reverse mode, that asking a run for one is a clear error."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, NoReturn

import tensorflow as tf
from tensorflow.python.eager import record  # private, but what tf.recompute_grad is made of; there is no public twin

from pcbatch.diagnostics import GradientError

TAPES = (tf.GradientTape, tf.autodiff.ForwardAccumulator)


def takes_gradients(value: Any) -> bool:
    """Whether `value` is one of TensorFlow's tapes, or a function whose code names one."""
    if isinstance(value, FunctionType):
        return _names_tape(value.__code__)
    return any(value is tape for tape in TAPES)


def _names_tape(code: CodeType) -> bool:
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return any(tape.__name__ in code.co_names for tape in TAPES) or any(map(_names_tape, inside))


def seal(function: Any, name: str) -> Callable[..., Any]:
    """The `tf.function` `function(*tensors) -> list of tensors`, whose gradient raises GradientError PCB601.

    `variables` that the function captures take part like its arguments.
    """

    def no_gradient(*upstream: tf.Tensor, variables: Any = None) -> NoReturn:
        raise GradientError(
            f"PCB601: a gradient through the batched call of {name!r} was asked for, and pcbatch has no reverse mode "
            f"yet.\n  help: take the gradient inside, in a plain helper that the batched function calls "
            f"(`with tf.GradientTape()`), or keep it from flowing through the call with tf.stop_gradient(...)"
        )

    def sealed(*arrays: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
        traced = function.get_concrete_function(*arrays)  # outside of the pause: tapes inside pieces must record
        # Without this pause a tape builds the gradient of the machine's loop at once, which fails even if nobody asks
        # for it.
        with record.stop_recording():
            outputs = traced(*arrays)
        return list(outputs), no_gradient

    if tf.executing_eagerly() and not record.could_possibly_record():
        return function  # there is no tape that could ask, and sealing costs each call 0.3 ms
    return tf.custom_gradient(sealed)
