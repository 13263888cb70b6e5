"""Gradient tapes inside a function of one example: they watch the tensors of its values."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pcbatch.single.calls import plain, shown
from pcbatch.single.values import Array, Number, Value, Variable, Watched, constant, operand, tensor


class Tape(tf.GradientTape):  # type: ignore[misc]
    """A gradient tape that takes values of ours for what they hold."""

    def watch(self, tensor: Any) -> None:
        """Follow values; numbers and arrays that nobody has followed so far have a tensor from now on."""
        super().watch(plain(tensor, watched))

    def gradient(self, target: Any, sources: Any, *given: Any, **options: Any) -> Any:
        """The gradient, as values."""
        return shown(super().gradient(plain(target, tensor), plain(sources, _source), *given, **options))

    def jacobian(self, target: Any, sources: Any, *given: Any, **options: Any) -> Any:
        """The Jacobian, as values."""
        return shown(super().jacobian(plain(target, tensor), plain(sources, _source), *given, **options))

    def batch_jacobian(self, target: Any, source: Any, *given: Any, **options: Any) -> Any:
        """The Jacobians of rows, as values."""
        return shown(super().batch_jacobian(plain(target, tensor), plain(source, _source), *given, **options))


class Accumulator(tf.autodiff.ForwardAccumulator):  # type: ignore[misc]
    """Forward mode, of values of ours."""

    def __init__(self, primals: Any, tangents: Any):
        super().__init__(plain(primals, watched), plain(tangents, tensor))

    def jvp(self, primals: Any, *given: Any, **options: Any) -> Any:
        """The derivative along the tangents, as values."""
        return shown(super().jvp(plain(primals, _source), *given, **options))


def watched(value: Any) -> tf.Tensor:
    """The tensor of a value, which it is from now on."""
    if type(value) is Number:
        found = constant(value.value)
        value.__class__ = Watched
        value.tensor = found  # type: ignore[attr-defined]
    elif isinstance(value, Array) and value.watched() is None:
        if value.owner is not None:
            value.value, value.owner = value.value.copy(), None
        value.tensor = constant(value.value)
    return _source(value)


def _source(value: Any) -> Any:
    if isinstance(value, Variable):
        return value.variable
    found = operand(value) if isinstance(value, Value) else value
    return found if isinstance(found, tf.Tensor) else constant(found)
