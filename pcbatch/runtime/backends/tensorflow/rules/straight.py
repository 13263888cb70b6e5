"""Operations on arrays of one lane that are the same operations on arrays of all lanes: element by element.

Most operations of most pieces are such, and pfor's way of making one takes five times as long as the operation itself.
What is made here is what pfor makes, to the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import private, ready

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
"""Operations of one output that broadcast their inputs. None of them has a rule of ours."""


@dataclass(frozen=True)
class Converted:
    """What stands for a tensor of one lane: `[lanes, ...]` if it `is_stacked`, the same for all lanes if it is not."""

    t: tf.Tensor
    is_stacked: bool


def converted(operation: Any, inputs: Sequence[Converted]) -> list[Converted] | None:
    """What stands for the outputs of an operation, of which `inputs` stand for the inputs; None: ask pfor.

    Where no input is stacked the operation is made as it is.
    """
    kind = operation.type
    if kind not in ELEMENTWISE and kind != "Const":
        return None
    if operation.control_inputs or private.has_rule(operation) or any(each.t.shape.rank is None for each in inputs):
        return None
    if private.may_record():  # pfor tells tapes of what it makes
        return None
    ranks = [each.t.shape.rank + (not each.is_stacked) for each in inputs]
    graph = tf.compat.v1.get_default_graph()
    with graph.name_scope(f"{operation.name}/pfor/"):  # by which errors tell where it comes from
        tensors = [_of_rank(each, max(ranks) - rank) for each, rank in zip(inputs, ranks, strict=True)]
        dtypes = [output.dtype for output in operation.outputs]
        found = private.operation(graph, kind, tensors, dtypes, operation.node_def.attr)
    is_stacked = any(each.is_stacked for each in inputs)
    return [Converted(output, is_stacked) for output in found]


def _of_rank(value: Converted, missing: int) -> tf.Tensor:
    """The tensor, with axes of length 1 after the lanes if it is stacked, ready to broadcast with the others."""
    tensor = value.t
    for _ in range(missing if value.is_stacked else 0):
        tensor = ready.expanded(tensor)
    return tensor
