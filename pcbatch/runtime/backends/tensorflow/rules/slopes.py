"""Rules for operations that gradients are made of, where XLA gives another number than TensorFlow's kernels.

The slope of a square root, its inverse and of a reciprocal is infinite at 0. TensorFlow's kernels give 0 where what
comes back is 0, whatever the slope is, so that `tf.where(x > 0, tf.sqrt(x), 0)` has a gradient at 0; XLA multiplies,
which is NaN. Of `selu` at 0 XLA takes the slope from the left, and of `elu` and `selu` at NaN it gives NaN: the kernels
have the slope from the right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs
from pcbatch.runtime.backends.tensorflow.rules.family import Applies, Rule
from pcbatch.runtime.backends.tensorflow.rules.straight import Converted

Plain = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""The replacement of an element-wise operation of two inputs of one shape."""

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
"""Klambauer, Unterthiner, Mayr, Hochreiter, "Self-Normalizing Neural Networks", NIPS 2017."""


def _zero_of_zero(slope: Callable[..., tf.Tensor]) -> Plain:
    def plain(result: tf.Tensor, back: tf.Tensor) -> tf.Tensor:
        return tf.where(tf.equal(back, 0), back, slope(y=result, dy=back))

    return plain


def _elu(back: tf.Tensor, result: tf.Tensor) -> tf.Tensor:
    return tf.where(result < 0, (result + 1) * back, back)


def _selu(back: tf.Tensor, result: tf.Tensor) -> tf.Tensor:
    return tf.where(result < 0, (result + _SELU_SCALE * _SELU_ALPHA) * back, _SELU_SCALE * back)


_PLAIN: dict[str, Plain] = {
    "SqrtGrad": _zero_of_zero(tf.raw_ops.SqrtGrad),
    "RsqrtGrad": _zero_of_zero(tf.raw_ops.RsqrtGrad),
    "InvGrad": _zero_of_zero(tf.raw_ops.InvGrad),
    "ReciprocalGrad": _zero_of_zero(tf.raw_ops.ReciprocalGrad),
    "EluGrad": _elu,
    "SeluGrad": _selu,
}


def _rule(plain: Plain) -> Rule:
    def rule(inputs: Any) -> tf.Tensor:
        inputs.stack_inputs()
        return plain(inputs.stacked_input(0), inputs.stacked_input(1))

    return rule


def _applies(inputs: Any) -> bool:
    return graphs.may_be_in_xla()


CORRECTIONS: dict[str, tuple[Applies, Rule]] = {name: (_applies, _rule(plain)) for name, plain in _PLAIN.items()}


def is_corrected(operation: Any) -> bool:
    """Return whether an operation is replaced."""
    return operation.type in _PLAIN and graphs.may_be_in_xla()


def same_for_all(operation: Any, inputs: Sequence[Converted]) -> list[Converted] | None:
    """Return the replaced output of such an operation if no input differs by lane; None for another operation."""
    if not is_corrected(operation) or any(each.is_stacked for each in inputs):
        return None
    return [Converted(_PLAIN[operation.type](*(each.t for each in inputs)), False)]
