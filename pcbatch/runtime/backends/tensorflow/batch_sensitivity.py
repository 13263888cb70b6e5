"""The ways in which a piece depends on the number of rows computed together, from the operations of its trace.

XLA's CPU compiler rounds a product of rows with one matrix otherwise for 48 rows than for 16, and so it does with the
sum of a row of 1,000 numbers, and now and then with functions of single numbers (`log1p` of 1,024 of them), in float32
and float64. What only moves numbers or chooses among them has the same bits for any number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.pieces import BatchSensitivity
from pcbatch.runtime.backends.tensorflow import flop_estimate
from pcbatch.runtime.backends.tensorflow.rules.straight import ELEMENTWISE


def together(graph: Any, inputs: Sequence[tf.Tensor], outputs: Sequence[Any]) -> BatchSensitivity:
    """Return the properties of a computation in `graph` from the tensors `inputs` of one lane to `outputs`."""
    operations = [operation for operation, _ in flop_estimate.by_operation(graph, inputs, outputs)]
    by_lane = {tensor.ref() for tensor in inputs}
    by_lane.update(tensor.ref() for operation in operations for tensor in operation.outputs)
    found = [_operation(operation, by_lane) for operation in operations]
    return _all(found)


def _all(found: Sequence[BatchSensitivity]) -> BatchSensitivity:
    """Join the properties of several computations."""
    return BatchSensitivity(
        rounds=any(each.rounds for each in found),
        shares=any(each.shares for each in found),
        most=max((each.most for each in found), default=0),
        componentwise=all(each.componentwise for each in found),
    )


def _operation(operation: Any, by_lane: set[Any]) -> BatchSensitivity:
    inside = [_body(body, operation, by_lane) for body in flop_estimate.bodies(operation)]
    if inside:
        return _all([*inside, BatchSensitivity(rounds=False, shares=False, most=_most(operation))])
    floats = any(tensor.dtype.is_floating or tensor.dtype.is_complex for tensor in operation.outputs)
    shares = any(tensor.ref() not in by_lane for tensor in operation.inputs)
    return BatchSensitivity(
        rounds=floats and operation.type not in EXACT,
        shares=shares and operation.type in PRODUCTS,
        most=_most(operation),
        componentwise=operation.type in COMPONENTWISE
        and all(tensor.ref() in by_lane or tensor.shape.rank == 0 for tensor in operation.inputs),
    )


def _most(operation: Any) -> int:
    """Return the size of the largest array, of known shape, among an operation's inputs and outputs."""
    tensors = (*operation.inputs, *operation.outputs)
    return max((tensor.shape.num_elements() or 0 for tensor in tensors), default=0)


def _body(body: Any, operation: Any, by_lane: set[Any]) -> BatchSensitivity:
    """Return the properties of a function that an operation runs; one that chooses a function has one more input."""
    given = operation.inputs[len(operation.inputs) - len(body.inputs) :]
    varying = [inner for inner, outer in zip(body.inputs, given, strict=True) if outer.ref() in by_lane]
    return together(body, varying, body.outputs)


PRODUCTS = frozenset((
    "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "Conv2D", "Conv3D", "Conv2DBackpropInput",
    "Conv3DBackpropInputV2", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
))  # fmt: skip
"""Operations that read shared values once for several rows."""

COMPONENTWISE = ELEMENTWISE | {
    "Elu",
    "LeakyRelu",
    "Maximum",
    "Minimum",
    "Relu",
    "Relu6",
    "Selu",
    "Softplus",
    "Softsign",
}
"""Operations that do the same to each element."""

EXACT = frozenset((
    "Abs", "BroadcastTo", "Ceil", "ConcatV2", "Const", "EnsureShape", "ExpandDims", "Fill", "Floor", "Gather",
    "GatherNd", "GatherV2", "Identity", "IdentityN", "Max", "Maximum", "Min", "Minimum", "Neg", "OnesLike", "Pack",
    "Pad", "PadV2", "PreventGradient", "ReadVariableOp", "Relu", "Reshape", "ReverseV2", "Rint", "Roll", "Round",
    "ScatterNd", "Select", "SelectV2", "Sign", "Slice", "Snapshot", "Split", "SplitV", "Squeeze", "StopGradient",
    "StridedSlice", "TensorScatterUpdate", "Tile", "Transpose", "Unpack", "ZerosLike",
))  # fmt: skip
"""Operations whose floats are among those that they are given, up to their signs, or whole numbers."""
