"""Operations on arrays of one lane that are, but for an axis, the same operations on arrays of all lanes.

Most operations of most pieces are such: they go element by element, or only arrange elements, at places that are known
when they are traced. pfor takes five times as long to make one as the operation itself takes, and makes others of its
numbers, which XLA folds. What is made here is what is left of it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import graphs, private, raw_ops
from pcbatch.runtime.backends.tensorflow.arithmetic import inverse_power
from pcbatch.runtime.backends.tensorflow.rules.family import INSTEAD, Applies, Rule, aligned
from pcbatch.runtime.backends.tensorflow.xla_cpu import products

# -- powers ------------------------------------------------------------------------------------------------------------
# Powers of integers: XLA looks at the last six bits of an exponent only, so that `0 ** 64` is 1 and `3 ** 100` wrong.
#
# Integers wrap, and TensorFlow's kernels wrap as NumPy does: what is left of a large power is of use, in hashes for
# one.

DIGIT = 6
"""Number of bits of an exponent that XLA uses."""


def power(base: tf.Tensor, exponent: tf.Tensor) -> tf.Tensor:
    """`tf.pow` of integers under XLA. Negative exponents, for which TensorFlow's kernels raise, give what XLA gives."""
    known = tf.get_static_value(exponent)
    if known is not None and ((known >= 0) & (known < 1 << DIGIT)).all():
        return tf.pow(base, exponent)
    bits = 8 * exponent.dtype.size - 1 if known is None else int(known.max()).bit_length()
    shift, last = (tf.constant(number, exponent.dtype) for number in (DIGIT, (1 << DIGIT) - 1))
    rest = tf.maximum(exponent, tf.zeros_like(exponent))
    found = tf.pow(base, rest & last)
    raised = base
    for _ in range(DIGIT, bits, DIGIT):
        rest = tf.bitwise.right_shift(rest, shift)
        for _ in range(DIGIT):
            raised *= raised
        found *= tf.pow(raised, rest & last)
    return tf.where(exponent < 0, inverse_power(base, exponent), found)


def is_whole(operation: Any) -> bool:
    """Return whether an operation is a power of integers that XLA compiles."""
    return operation.type == "Pow" and operation.outputs[0].dtype.is_integer and graphs.in_outer_xla()


def _applies(inputs: Any) -> bool:
    return tf.as_dtype(inputs.get_attr("T")).is_integer and graphs.in_outer_xla()


def _of_all_lanes(inputs: Any) -> tf.Tensor:
    return power(*aligned([inputs.input(0), inputs.input(1)]))


CORRECTIONS: dict[str, tuple[Applies, Rule]] = {"Pow": (_applies, _of_all_lanes)}


# -- straight ----------------------------------------------------------------------------------------------------------

ELEMENTWISE = frozenset(
    (
        "Abs", "Acos", "Acosh", "Add", "AddV2", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "BitwiseAnd", "BitwiseOr",
        "BitwiseXor", "Cast", "Ceil", "Cos", "Cosh", "Div", "DivNoNan", "Equal", "Erf", "Erfc", "Exp", "Expm1", "Floor",
        "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Identity", "Inv", "Invert", "IsFinite", "IsInf", "IsNan",
        "LeftShift", "Less", "LessEqual", "Lgamma", "Log", "Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "Mul",
        "MulNoNan", "Neg", "NotEqual", "Pow", "RealDiv", "Reciprocal", "RightShift", "Rint", "Round", "Rsqrt",
        "SelectV2", "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Square", "SquaredDifference", "StopGradient", "Sub",
        "Tan", "Tanh", "Xdivy", "Xlogy",
    )
)  # fmt: skip
"""Operations of one output that broadcast their inputs."""


@dataclass(frozen=True)
class Converted:
    """The conversion of a tensor of one lane: `[lanes, ...]` if it `is_stacked`, otherwise the same for all lanes."""

    t: tf.Tensor
    is_stacked: bool


def converted(operation: Any, inputs: Sequence[Converted]) -> list[Converted] | None:
    """Convert an operation's outputs, given the conversions of its inputs; return None to leave it to pfor."""
    if operation.type not in _RULES or operation.control_inputs or private.has_rule(operation):
        return None
    if not all(map(_is_array, inputs)):
        return None
    if operation.type == "LogicalNot" and not graphs.in_outer_xla():
        return [Converted(_negated(inputs[0].t), inputs[0].is_stacked)]
    if private.may_record():  # pfor tells tapes what it makes
        return None
    with tf.compat.v1.get_default_graph().name_scope(f"{operation.name}/pfor/"):  # by which errors say what it is of
        if not any(each.is_stacked for each in inputs):
            return [Converted(output, False) for output in _made(operation, [each.t for each in inputs])]
        found = _RULES[operation.type](operation, inputs)
    # An `==` of arrays of different shapes is one False, of all lanes together: pfor says which operation fails.
    rank = operation.outputs[0].shape.rank
    return None if found is None or rank is None or found.shape.rank != rank + 1 else [Converted(found, True)]


def as_it_is(operation: Any, inputs: Sequence[tf.Tensor], **changes: Any) -> list[Converted]:
    """The outputs of the same operation on other inputs of the same types, with `changes` of its attributes."""
    with tf.compat.v1.get_default_graph().name_scope(f"{operation.name}/pfor/"):
        outputs = _made(operation, inputs, **changes)
    for output, known in zip(outputs, operation.outputs, strict=True):
        if output.dtype != tf.variant:
            output.set_shape(known.shape)
    return [Converted(output, False) for output in outputs]


def _is_array(value: Converted) -> bool:
    """Return whether this is an array of known rank; lists of arrays and variables are stacked in another way."""
    return value.t.shape.rank is not None and value.t.dtype not in (tf.variant, tf.resource)


def _made(operation: Any, inputs: Sequence[tf.Tensor], **changes: Any) -> Sequence[tf.Tensor]:
    """Make the operation with other inputs and with `changes` of its attributes."""
    if operation.type in INSTEAD and graphs.in_outer_xla():
        return [INSTEAD[operation.type](*inputs)]
    if is_whole(operation):
        return [power(*inputs)]
    dtypes = [output.dtype for output in operation.outputs]
    attributes = operation.node_def.attr
    if changes:
        attributes = {name: value for name, value in attributes.items() if name != "_output_shapes"} | changes
    return private.operation(tf.compat.v1.get_default_graph(), operation.type, inputs, dtypes, attributes)


def _negated(truth: tf.Tensor) -> tf.Tensor:
    """`not truth`, in a graph that TensorFlow optimises: of `not a <= b` it makes `a > b`, which is wrong for NaN."""
    return tf.not_equal(truth, True)


# -- rules: the inputs of an operation, of which one at least is stacked, to its output --------------------------------


def _elementwise(operation: Any, inputs: Sequence[Converted]) -> tf.Tensor:
    return _made(operation, aligned(inputs))[0]


def _rearranged(operation: Any, inputs: Sequence[Converted]) -> tf.Tensor | None:
    """Reshape, Squeeze, ExpandDims: the elements in their order, in another shape.

    TensorFlow's rule for a Squeeze of all axes of length 1 loses that of the lanes, if there is one lane.
    """
    lanes, shape = inputs[0].t.shape[0], operation.outputs[0].shape
    if not shape.is_fully_defined() or _varies(inputs[1:]) or (lanes is None and 0 in shape):
        return None
    return raw_ops.reshape(inputs[0].t, (-1 if lanes is None else lanes, *shape))


def _reduced(operation: Any, inputs: Sequence[Converted]) -> tf.Tensor | None:
    """The axes of an example are counted from one on, after that of the lanes; negative ones stay."""
    axes = tf.get_static_value(operation.inputs[1])
    if axes is None or _varies(inputs[1:]):
        return None
    total = products.of_rows(operation, inputs[0].t)
    if total is not None:
        return total
    return _made(operation, [inputs[0].t, tf.constant(axes + (axes >= 0), operation.inputs[1].dtype)])[0]


def _sliced(operation: Any, inputs: Sequence[Converted]) -> tf.Tensor | None:
    """A slice in Python's notation: that of all lanes comes first."""
    bounds = [tf.get_static_value(tensor) for tensor in operation.inputs[1:]]
    if any(each is None for each in bounds) or _varies(inputs[1:]):
        return None
    given = [
        tf.constant(np.concatenate([[each], known]), tensor.dtype)
        for each, known, tensor in zip((0, 0, 1), bounds, operation.inputs[1:], strict=True)
    ]
    masks = {name: operation.get_attr(name) << 1 for name in _MASKS}
    masks["begin_mask"] |= 1
    masks["end_mask"] |= 1
    changes = {name: raw_ops.integer_attribute(mask) for name, mask in masks.items()}
    return _made(operation, [inputs[0].t, *given], **changes)[0]


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _varies(operands: Sequence[Converted]) -> bool:
    """Return whether any of the operands, which all lanes should share, differs by lane."""
    return any(each.is_stacked for each in operands)


_RULES = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(("Reshape", "Squeeze", "ExpandDims"), _rearranged),
    **dict.fromkeys(("Sum", "Prod", "Mean", "All", "Any"), _reduced),
    "StridedSlice": _sliced,
    "Const": _elementwise,
}
OPERATIONS = frozenset(_RULES)
"""All operations that are converted here; none of them has another rule of ours."""
