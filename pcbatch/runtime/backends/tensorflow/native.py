"""Programs that XLA's CPU compiler makes one native function, with all their loops in it.

XLA runs small loops apart from its kernels: what is called under the attribute `xla_cpu_small_call` becomes one LLVM
function, in which loops and conditionals are jumps and a scalar is a register. `XlaCallModule` lets a program ask for
it: a module of a few lines calls a TensorFlow function under this attribute. A scatter, a sort and some others cannot
be compiled so: `obstacles` finds what is not known to run.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import branches, graphs, lists, private, ready, work, xla_cpu

_numbers = itertools.count()

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
Cholesky Cross MatrixBandPart MatrixSetDiag MatrixSetDiagV3 MatrixTriangularSolve TridiagonalMatMul
"""
_LISTS = """
EmptyTensorList TensorListElementShape TensorListFromTensor TensorListGetItem TensorListLength TensorListPopBack
TensorListPushBack TensorListReserve TensorListSetItem TensorListStack
"""
_FUNCTIONS = """
Case If PartitionedCall StatefulPartitionedCall StatelessCase StatelessIf StatelessWhile While
"""
PLAIN = frozenset(" ".join((_ELEMENTWISE, _SHAPES, _REDUCTIONS, _FUNCTIONS)).split())
"""Types of operations: elementwise ones, those that move elements, reductions, and what runs functions."""
KNOWN = PLAIN | frozenset(" ".join((_PRODUCTS, _GRADIENTS, _ARRANGEMENTS, _LAYERS, _MATRICES, _LISTS)).split())
"""The types of operations that are known to run in a native function, and to give what they give elsewhere.

XLA refuses to compile a scatter of several places there (so `MaxPoolGrad`), a sort (`TopKV2`, `Svd`,
`SelfAdjointEigV2`) and an `FFT`. `MatrixInverse`, `MatrixSolve`, `Qr` and convolutions run right;
how fast was not measured.
"""


def obstacles(operations: Iterable[Any]) -> Iterator[str]:
    """The types of those operations, functions that they run included, that are not known to run natively."""
    for operation in operations:
        if operation.type not in KNOWN or lists.is_unbounded(operation):
            yield operation.type
        for body in work.bodies(operation):
            yield from obstacles(body.get_operations())


_ORDINARY = """
Acos Acosh Asin Asinh Atan Atan2 Atanh Cos Cosh Erf Erfc Exp Expm1 Log Log1p Pow Sigmoid Sin Sinh Softplus Tan Tanh
Xlog1py Xlogy
"""
_SPECIAL = """
BesselI0e BesselI1e Betainc Digamma Erfinv Igamma Igammac Lgamma Ndtri Polygamma Zeta
"""
_CALLS = dict.fromkeys(_ORDINARY.split(), 1.0) | dict.fromkeys(_SPECIAL.split(), 5.0)
"""Functions that are not a few instructions, and how many times as long as `exp` they take."""
_SINGLE = 4
"""So many numbers at most count for themselves: XLA makes vectors of more."""


def calls(operations: Iterable[Any]) -> float:
    """How many calls of functions on single numbers those operations make; see `Pieces.calls`."""
    total = 0.0
    for operation in operations:
        if operation.type in _CALLS:
            (result,) = operation.outputs
            numbers = min(result.shape.num_elements() or 0, _SINGLE)
            total += numbers * _CALLS[operation.type] * (2 if result.dtype in (tf.float64, tf.complex128) else 1)
        total += sum(calls(body.get_operations()) for body in work.bodies(operation))
    return total


def has_loop(operations: Iterable[Any]) -> bool:
    """Whether some operations, functions that they run included, have a loop among them."""
    return any(
        operation.type in _LOOPS or any(has_loop(body.get_operations()) for body in work.bodies(operation))
        for operation in operations
    )


_LOOPS = ("While", "StatelessWhile")


def count(operations: Iterable[Any]) -> int:
    """How many operations some operations are, with those of functions that they run."""
    return sum(1 + sum(count(body.get_operations()) for body in work.bodies(each)) for each in operations)


# -- one function ------------------------------------------------------------------------------------------------------

_MODULE = """module @pcbatch {{
  func.func public @main({parameters}) -> ({results}) {{
    {names} = func.call @native({arguments}) {{mhlo.frontend_attributes = {natively}}} : {signature}
    return {given} : {results}
  }}
  func.func private @native({parameters}) -> ({results}) {{
    {names} = stablehlo.custom_call @tf.call_tf_function({arguments}) {{tf.backend_config = {function}}} : {signature}
    return {given} : {results}
  }}
}}"""
_NATIVELY = '{xla_cpu_small_call = "true", inlineable = "false"}'
_FUNCTION = "{called_index = 0 : i64, has_token_input_output = false}"


def call(
    function: Callable[..., Sequence[tf.Tensor]], arrays: Sequence[tf.Tensor], changed: int = 0
) -> list[tf.Tensor]:
    """`function(*arrays)` as one native function where XLA compiles for a CPU, else as it is; and a `witness`.

    The witness leaves out the first `changed` arrays: to read them beside what changes them takes copies.
    """
    if not (xla_cpu.applies() and _has_parts()):
        return [*function(*arrays), witness(arrays[changed:])]
    graph = private.new_graph(f"pcbatch_native_{next(_numbers)}")
    with graph.as_default():
        given = [ready.placeholder(array.dtype, tuple(array.shape)) for array in arrays]
        results = [private.capture(graph, result) for result in function(*given)]
        captured = private.captures(graph)
        graph.inputs = [*given, *(inner for _, inner in captured)]
        graph.outputs = [*results, witness(graph.inputs[changed:])]
    inputs, outputs = [*arrays, *(outer for outer, _ in captured)], graph.outputs
    return private.call_module(_module(inputs, outputs), inputs, outputs, private.function_of(graph))


def witness(arrays: Sequence[tf.Tensor]) -> tf.Tensor:
    """An int32 that depends on all arrays, without elements none.

    XLA aborts the whole process if a native function has an argument that its results do not depend on, and what they
    depend on is known only when all is optimised. So this is a result as well, to be returned by the whole program.
    """
    firsts = [tf.cast(_real(_first(array)), tf.int32) for array in arrays if array.shape.num_elements()]
    return tf.add_n(firsts) if firsts else tf.constant(0)


def _first(array: tf.Tensor) -> tf.Tensor:
    zeros, ones = (0,) * array.shape.rank, (1,) * array.shape.rank
    return ready.reshape(ready.part(array, ready.constant(zeros), ones), ()) if zeros else array


def _real(number: tf.Tensor) -> tf.Tensor:
    return tf.math.real(number) if number.dtype.is_complex else number


def are_made() -> bool:
    """Whether XLA compiles for a CPU, may be asked for native functions, and heeds that."""
    return xla_cpu.is_on() and _has_parts() and _heeded()


def _has_parts() -> bool:
    """Whether TensorFlow has all that this takes."""
    slices = private.dynamic_slice() is not None and private.update_slice() is not None
    return slices and private.makes_functions() and private.has_modules()


@functools.cache
def _heeded() -> bool:
    """Whether XLA makes one function of a loop if asked to: the attribute is its own affair, and may lose its meaning.

    A loop of one turn is compiled, in 0.1 s. What is a call to this attribute is one in the optimised program.
    """

    def twice(number: tf.Tensor) -> list[tf.Tensor]:
        with ready.reusing():
            body = functools.partial(branches.loop, lambda x: x[0] < 10, lambda x: [x[0] + x[0]])
            return call(lambda x: body([x]), [number])

    with tf.init_scope():  # a graph may be under construction
        traced = tf.function(twice, jit_compile=True, autograph=False)
        text = traced.experimental_get_compiler_ir(tf.TensorSpec([], tf.int32))(stage="optimized_hlo")
    calls = [line for line in text.splitlines() if " call(" in line and 'xla_cpu_small_call="true"' in line]
    return bool(calls)


def _module(inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]) -> str:
    """The text of a module that calls the function number 0 natively."""
    types, results = [type_of(tensor) for tensor in inputs], ", ".join(map(type_of, outputs))
    names = [f"%r#{i}" for i, _ in enumerate(outputs)] if len(outputs) > 1 else ["%r"]
    return _MODULE.format(
        parameters=", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types)),
        arguments=", ".join(f"%a{i}" for i, _ in enumerate(types)),
        signature=f"({', '.join(types)}) -> ({results})",
        results=results,
        natively=_NATIVELY,
        function=_FUNCTION,
        names=f"%r:{len(outputs)}" if len(outputs) > 1 else "%r",
        given=", ".join(names),
    )


_ELEMENTS = {
    "bool": "i1",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
}


def type_of(tensor: tf.Tensor | tf.TensorSpec) -> str:
    """The type of a tensor as StableHLO writes it."""
    sizes = "".join("?x" if size is None else f"{size}x" for size in tensor.shape)
    return f"tensor<{sizes}{_ELEMENTS[tensor.dtype.name]}>"


# -- elements ----------------------------------------------------------------------------------------------------------


def element(array: tf.Tensor, indices: Sequence[tf.Tensor]) -> tf.Tensor:
    """`array[i, j, ..]`."""
    slice_of = private.dynamic_slice()
    rest = array.shape[len(indices) :]
    if slice_of is None or not graphs.in_outer_xla():
        sizes = array.shape[: len(indices)]
        clipped = [tf.clip_by_value(index, 0, size - 1) for index, size in zip(indices, sizes, strict=True)]
        return tf.gather_nd(array, tf.stack(clipped))
    sizes = (*[1] * len(indices), *rest)
    places = [tf.get_static_value(index) for index in indices]
    lengths = array.shape[: len(indices)]
    if all(place is not None for place in places) and all(lengths):
        inside = [min(max(int(place), 0), length - 1) for place, length in zip(places, lengths, strict=True)]
        first = ready.constant((*inside, *[0] * len(rest)))
        return ready.reshape(ready.part(array, first, sizes), tuple(rest))
    starts = _starts(indices, len(rest))
    # Both are one operation of XLA's, which takes the nearest element beyond an end. TensorFlow makes XLA's text of its
    # own in a tenth of the time, but refuses bounds that it knows to be beyond.
    known = branches.may_be_known(starts)
    found = slice_of(array, starts, ready.constant(sizes)) if known else ready.part(array, starts, sizes)
    return ready.reshape(found, tuple(rest))


def with_element(array: tf.Tensor, indices: Sequence[tf.Tensor], value: tf.Tensor) -> tf.Tensor:
    """`array` with `array[i, j, ..] = value`."""
    rest = array.shape[len(indices) :]
    if tuple(value.shape) != tuple(rest):
        value = tf.broadcast_to(value, rest)
    update = private.update_slice()
    if update is None or not graphs.in_outer_xla():
        sizes = array.shape[: len(indices)]
        clipped = [tf.clip_by_value(index, 0, size - 1) for index, size in zip(indices, sizes, strict=True)]
        return tf.tensor_scatter_nd_update(array, tf.stack(clipped)[None], value[None])
    return update(array, ready.reshape(value, (*[1] * len(indices), *rest)), _starts(indices, len(rest)))


def other_than(array: tf.Tensor) -> tf.Tensor:
    """An array of the same shape and dtype, of which a compiler does not know that it is `array`.

    One element is another: to compute all of them is code, which LLVM writes out for each of a few dozen elements.
    """
    if array.shape.rank == 0:
        return tf.logical_not(array) if array.dtype == tf.bool else array + array
    if not array.shape.num_elements():
        return array
    another = ready.constant(True if array.dtype == tf.bool else 1, array.dtype)
    return with_element(array, [ready.constant(0)] * array.shape.rank, another)


def _starts(indices: Sequence[tf.Tensor], rest: int) -> tf.Tensor:
    key = "starts", *(index.ref() for index in indices), rest
    return ready.once(key, lambda: ready.stack([*indices, *[ready.constant(0)] * rest]))
