"""Gradients: what takes them, and until there is reverse mode, that asking a run for one is a clear error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any, NoReturn

import tensorflow as tf

from pcbatch.errors import GradientError, PieceRefusalError
from pcbatch.runtime.backends.tensorflow import private

TAPES = (tf.GradientTape, tf.autodiff.ForwardAccumulator)


def takes_gradients(value: Any) -> bool:
    """Whether `value` is one of TensorFlow's tapes, or a function whose code names one."""
    if isinstance(value, FunctionType):
        return _names_tape(value.__code__)
    return any(value is tape for tape in TAPES)


def _names_tape(code: CodeType) -> bool:
    inside = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return any(tape.__name__ in code.co_names for tape in TAPES) or any(map(_names_tape, inside))


_taping: ContextVar[bool] = ContextVar("taping", default=False)

GOES_ON = (
    "the variable itself goes on to where only its value is known, which a gradient tape there takes for another tensor"
)
A_VALUE_OF_ITS_OWN = "let the code there read the variable from around it; or make a value of its own: tf.identity(..)"


@contextlib.contextmanager
def taping(tapes: bool) -> Iterator[None]:
    """The code traced inside belongs to a program that may have tapes, or that has none."""
    token = _taping.set(tapes)
    try:
        yield
    finally:
        _taping.reset(token)


def refuse_variables(leaves: Iterable[Any]) -> None:
    """PieceRefusalError PCB415 if one of `leaves`, of which something else is made, is a variable, and may be taped."""
    if _taping.get() and any(isinstance(leaf, tf.Variable) for leaf in leaves):
        raise PieceRefusalError("PCB415", GOES_ON, A_VALUE_OF_ITS_OWN)


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
        with private.unrecorded():
            outputs = traced(*arrays)
        return list(outputs), no_gradient

    if tf.executing_eagerly() and not private.may_record():
        return function  # there is no tape that could ask, and sealing costs each call 0.3 ms
    return tf.custom_gradient(sealed)
