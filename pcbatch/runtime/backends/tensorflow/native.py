"""Operations of which native code is made, by their types in TensorFlow: to choose the blocks that may be native.

What code is made of in the end the emitter knows, by HLO's operations (`runtime.llvm`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type
from pcbatch.runtime.backends.pieces import BatchSensitivity, Kernels
from pcbatch.runtime.backends.tensorflow import flop_estimate, graphs, lists
from pcbatch.runtime.backends.tensorflow.rules.straight import ELEMENTWISE
from pcbatch.runtime.backends.tensorflow.structures import type_of
from pcbatch.runtime.backends.tensorflow.traces import trace
from pcbatch.runtime.costs.device import CPU

# -- native ------------------------------------------------------------------------------------------------------------

_ELEMENTWISE = """
Abs Acos Acosh Add AddN AddV2 Angle ApproximateEqual Asin Asinh Atan Atan2 Atanh BesselI0e BesselI1e Betainc Bitcast
BitwiseAnd BitwiseOr BitwiseXor Bucketize Cast Ceil CheckNumerics ClipByValue Complex ComplexAbs Conj Cos Cosh Digamma
Div
DivNoNan Elu Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Igamma Igammac Imag Inv
Invert IsFinite IsInf IsNan LeakyRelu LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr
Maximum Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual OnesLike Polygamma PopulationCount Pow Real RealDiv
Reciprocal Relu Relu6 ReluGrad RightShift Rint Round Rsqrt RsqrtGrad Select SelectV2 Selu Sigmoid SigmoidGrad Sign
Sin Sinh Softplus SoftplusGrad Softsign Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh TanhGrad TruncateDiv
TruncateMod Xdivy Xlog1py Xlogy ZerosLike Zeta
"""
_SHAPES = """
BroadcastArgs BroadcastGradientArgs BroadcastTo Concat ConcatV2 Const Diag DiagPart EnsureShape ExpandDims Fill
Gather GatherNd GatherV2 Identity IdentityN LinSpace MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3
MatrixDiagV2 MatrixDiagV3 NoOp OneHot Pack Pad PadV2 Placeholder PlaceholderWithDefault PreventGradient Range Rank
Reshape Reverse ReverseV2 Roll Shape ShapeN Size Slice Snapshot Split SplitV Squeeze StopGradient StridedSlice
StridedSliceGrad Tile Transpose Unpack
"""
_REDUCTIONS = """
All Any ArgMax ArgMin Cumprod Cumsum L2Loss LogSoftmax Max Mean Min Prod Softmax Sum
"""
_PRODUCTS = """
BatchMatMul BatchMatMulV2 Einsum MatMul
"""
_GRADIENTS = """
AvgPoolGrad BiasAddGrad EluGrad FakeQuantWithMinMaxArgsGradient IgammaGradA LRNGrad LeakyReluGrad MirrorPadGrad
ReciprocalGrad Relu6Grad SeluGrad SoftsignGrad
"""
_ARRANGEMENTS = """
BatchToSpaceND ConcatOffset DepthToSpace DynamicStitch LowerBound MirrorPad ReverseSequence SpaceToBatchND SpaceToDepth
UpperBound
"""
_LAYERS = """
AvgPool AvgPool3D BiasAdd CumulativeLogsumexp FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars HSVToRGB InTopKV2 LRN
MaxPool MaxPool3D QuantizeAndDequantizeV4 RGBToHSV SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits
"""
_MATRICES = """
Cross MatrixBandPart MatrixSetDiag MatrixSetDiagV3 TridiagonalMatMul
"""
_LISTS = """
EmptyTensorList TensorListElementShape TensorListFromTensor TensorListGetItem TensorListLength TensorListPopBack
TensorListPushBack TensorListReserve TensorListSetItem TensorListStack
"""
_FUNCTIONS = """
Case If PartitionedCall StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile While
"""
PLAIN = frozenset(" ".join((_ELEMENTWISE, _SHAPES, _REDUCTIONS, _FUNCTIONS)).split())
"""Types of operations: elementwise ones, those that move elements, reductions, and callers of functions."""
KNOWN = PLAIN | frozenset(" ".join((_PRODUCTS, _GRADIENTS, _ARRANGEMENTS, _LAYERS, _MATRICES, _LISTS)).split())
"""Types of operations known to run in a native function with the same results as elsewhere.

Sorts of up to 64 numbers and scatters are native in programs that are native as a whole: the emitter knows them, too.
"""


def obstacles(operations: Iterable[Any]) -> Iterator[str]:
    """The types of those operations, functions that they run included, that are not known to run natively."""
    for operation in operations:
        if operation.type not in KNOWN or lists.is_unbounded(operation):
            yield operation.type
        for body in flop_estimate.bodies(operation):
            yield from obstacles(body.get_operations())


def has_loop(operations: Iterable[Any]) -> bool:
    """Return whether any operation, also in functions that they run, is a loop."""
    return any(
        operation.type in _LOOPS or any(has_loop(body.get_operations()) for body in flop_estimate.bodies(operation))
        for operation in operations
    )


_LOOPS = ("While", "StatelessWhile")


# -- batch sensitivity -------------------------------------------------------------------------------------------------
# The ways in which a piece depends on the number of rows computed together, from the operations of its trace.
#
# XLA's CPU compiler rounds a product of rows with one matrix otherwise for 48 rows than for 16, and so it does with the
# sum of a row of 1,000 numbers, and now and then with functions of single numbers (`log1p` of 1,024 of them), in
# float32 and float64. What only moves numbers or chooses among them has the same bits for any number of rows.


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


# -- kernels -----------------------------------------------------------------------------------------------------------
# Comparison of TensorFlow's own kernels for a piece with XLA's code for it: their speed and safety.
#
# XLA's compiler for CPUs has no fast code for convolutions by channel or in three dimensions, for sorts, and for
# gradients with respect to kernels; of products and much else it makes better code than TensorFlow's kernels are.

_SHARED_KERNEL = ("Conv2D", "Conv2DBackpropInput")
_WORK_OF_XLA: Mapping[str, float] = {
    **dict.fromkeys(_SHARED_KERNEL, CPU.compiled_convolution),
    "Conv2DBackpropFilter": CPU.compiled_to_kernel,
    **dict.fromkeys(("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"), CPU.compiled_volume),
    **dict.fromkeys(("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput"), CPU.compiled_by_channel),
    **dict.fromkeys(("TopK", "TopKV2"), CPU.compiled_sort),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"), CPU.compiled_product),
}
"""Factors on the work of operations where XLA compiles them."""


def kernels(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> Kernels:
    """See `pieces.Facts.kernels`."""
    traced = trace(piece, reads, shared)
    with traced.graph.as_default():
        types = [type_of(value) for value in traced.outputs]
    outputs = [*traced.leaves(types), *([traced.site] if traced.sites else [])]
    by_lane = flop_estimate.by_operation(traced.graph, traced.reads, outputs)
    given = {tensor.op.name for tensor in traced.reads}
    cost = compiled = 0.0
    for operation, own in by_lane:
        cost += own
        compiled += _compiled(operation, own, given)
    if graphs.on_gpu():
        return Kernels(cost, compiled, "nothing was measured on a GPU")
    every = flop_estimate.by_operation(traced.graph, [*traced.reads, *traced.shared], outputs)
    risky = next(_risky(operation for operation, _ in every), None)
    return Kernels(cost, compiled, risky and f"{risky} may fail without it")


# -- work --------------------------------------------------------------------------------------------------------------


def _compiled(operation: Any, cost: float, by_lane: set[str]) -> float:
    """The work of an operation as XLA compiles it, `cost` as TensorFlow has it.

    The operations named in `by_lane` give the values that are each lane's own.
    """
    if operation.type in _SHARED_KERNEL and by_lane & flop_estimate.needed([operation.inputs[1]]):
        return cost * CPU.compiled_own_kernel
    if operation.type in _WORK_OF_XLA:
        return cost * _WORK_OF_XLA[operation.type]
    inside = flop_estimate.bodies(operation)
    whole = compiled = 0.0
    for body in inside:
        given = {tensor.op.name for tensor in body.inputs}
        for each, own in flop_estimate.by_operation(body, body.inputs, body.outputs):
            whole += own
            compiled += _compiled(each, own, given)
    return cost * compiled / whole if whole else cost


# -- operations that TensorFlow's kernels refuse, where XLA goes on ----------------------------------------------------

_KNOWN = PLAIN - {"CheckNumerics", "Gather", "GatherNd", "GatherV2"} | frozenset(
    (
        "AvgPool", "AvgPoolGrad", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "BiasAdd", "BiasAddGrad", "Einsum",
        "EluGrad", "FFT", "FFT2D", "IFFT", "IFFT2D", "IRFFT", "LeakyReluGrad", "MatMul", "Relu6Grad", "RFFT",
        "SeluGrad", "SoftmaxCrossEntropyWithLogits", "SoftsignGrad", "StridedSliceGrad", "TopK", "TopKV2",
    )
)  # fmt: skip
"""Operations whose kernels never fail, whatever the values, or only as `_CONDITIONS` say."""


def _risky(operations: Iterable[Any]) -> Iterator[str]:
    """The types of operations whose kernels are not known to go on whatever the values, functions included."""
    for operation in operations:
        holds = _CONDITIONS.get(operation.type, lambda operation: operation.type in _KNOWN)
        if not holds(operation):
            yield operation.type
        for body in flop_estimate.bodies(operation):
            yield from _risky(body.get_operations())


def _of_floats(operation: Any) -> bool:
    """An integer's division by zero, or negative power, raises."""
    return not operation.outputs[0].dtype.is_integer


def _in_place(operation: Any) -> bool:
    """A slice, or an index in one, that does not lie within the array raises; if known here, it has been checked."""
    return all(tf.get_static_value(bound) is not None for bound in operation.inputs[1:])


def _channels_last(operation: Any) -> bool:
    """TensorFlow's kernels for CPUs know no other order, and no half precision."""
    is_last = operation.get_attr("data_format").decode() in ("NHWC", "NDHWC")
    return is_last and operation.outputs[0].dtype in (tf.float32, tf.float64)


def _convolution(image: Callable[[Any], int | None], kernel: Callable[[Any], int | None]) -> Callable[[Any], bool]:
    """Return the rule of convolutions: no groups, and no gradients where there are gaps or zeros of any width.

    `image` and `kernel` give the channels of the one and those that the other is for.
    """

    def holds(operation: Any) -> bool:
        is_gradient = "Backprop" in operation.type
        in_one_group = image(operation) is not None and image(operation) == kernel(operation)
        is_plain = set(operation.get_attr("dilations")) == {1} and operation.get_attr("padding") != b"EXPLICIT"
        return _channels_last(operation) and in_one_group and (is_plain or not is_gradient)

    return holds


def _channels(operation: Any, at: int, sizes: int) -> int | None:
    """Return the size at place `at` of an operation's result: of its shape, or as operand `sizes` has it."""
    size: int | None = operation.outputs[0].shape[at]
    return _size(operation.inputs[sizes], at) if size is None else size


def _size(sizes: tf.Tensor, at: int) -> int | None:
    """Return one of some sizes, if it is known: a Jacobian's are those of one row, times their number."""
    known, operation = tf.get_static_value(sizes), sizes.op
    if known is not None:
        return int(known[at])
    if operation.type == "ShapeN":
        size: int | None = operation.inputs[sizes.value_index].shape[at]
        return size
    if operation.type == "Mul":
        one, other = (_size(each, at) for each in operation.inputs)
        return None if one is None or other is None else one * other
    return None


_FORWARD = _convolution(lambda o: o.inputs[0].shape[-1], lambda o: o.inputs[1].shape[-2])
_TO_IMAGE = _convolution(lambda o: _channels(o, -1, 0), lambda o: o.inputs[1].shape[-2])
_TO_KERNEL = _convolution(lambda o: o.inputs[0].shape[-1], lambda o: _channels(o, -2, 1))
_CONDITIONS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("Div", "FloorDiv", "FloorMod", "Mod", "Pow", "TruncateDiv", "TruncateMod"), _of_floats),
    **dict.fromkeys(("Slice", "StridedSlice"), _in_place),
    **dict.fromkeys(("MaxPool", "MaxPoolGrad"), _channels_last),
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), _FORWARD),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"), _TO_IMAGE),
    **dict.fromkeys(
        ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter"), _TO_KERNEL
    ),
}
