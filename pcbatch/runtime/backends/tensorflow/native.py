"""Operations of which native code is made, by their types in TensorFlow: to choose the blocks that may be native.

What code is made of in the end the emitter knows, by HLO's operations (`runtime.llvm`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pcbatch.runtime.backends.tensorflow import flop_estimate, lists

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
