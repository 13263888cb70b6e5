"""The work of a traced graph: a table from the type of an operation to its multiply-adds or elements.

What no result depends on is not counted, for XLA drops it; nor is what no lane's value goes into, for that is computed
once for all lanes. An unknown size counts as 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, private
from pcbatch.runtime.costs.device import CPU

UNKNOWN_TURNS = 16
"""Turns that a loop inside an operation is taken to make where its condition does not tell: a guess."""

Rule = Callable[[Any], float]


def work(graph: Any, inputs: Sequence[tf.Tensor], outputs: Sequence[Any]) -> float:
    """The work of computing the tensors `outputs` of `graph` from its tensors `inputs`, the values of one lane."""
    return sum(cost for _, cost in by_operation(graph, inputs, outputs))


def by_operation(
    graph: Any, inputs: Sequence[tf.Tensor], outputs: Sequence[Any]
) -> Iterator[tuple[tf.Operation, float]]:
    """The operations that `work` counts, and the work of each."""
    used = needed(outputs)
    varying = {tensor.ref() for tensor in inputs}
    for operation in graph.get_operations():  # in an order in which inputs come first
        if any(tensor.ref() in varying for tensor in operation.inputs):
            varying.update(tensor.ref() for tensor in operation.outputs)
            if operation.name in used:
                yield operation, _operation(operation)


def needed(outputs: Sequence[Any], given: Collection[int] = ()) -> set[str]:
    """The names of the operations that `outputs` depend on, but for those of tensors that are `given`, by `id`."""
    pending = [output.op for output in outputs if tf.is_symbolic_tensor(output) and id(output) not in given]
    found: set[str] = set()
    while pending:
        operation = pending.pop()
        if operation.name not in found:
            found.add(operation.name)
            pending += [tensor.op for tensor in operation.inputs if id(tensor) not in given]
    return found


def in_order(outputs: Sequence[Any], given: Collection[int] = ()) -> list[Any]:
    """The operations that `outputs` depend on, inputs first, but for those of tensors that are `given`, by `id`."""
    found: dict[str, Any] = {}
    for output in outputs:
        pending = [output.op] if tf.is_symbolic_tensor(output) and id(output) not in given else []
        while pending:
            operation = pending[-1]
            inputs = (each.op for each in operation.inputs if id(each) not in given)
            missing = [each for each in inputs if each.name not in found]
            pending += missing
            if not missing:
                found[pending.pop().name] = operation
    return [*found.values()]


def _operation(operation: Any) -> float:
    rule = RULES.get(operation.type)
    if rule is not None:
        return rule(operation)
    if custom_vectorised_ops.is_run(operation):
        return CPU.called
    inside = bodies(operation)
    return sum(map(_whole, inside)) if inside else _elements(operation)


# -- operations that run functions -------------------------------------------------------------------------------------


def bodies(operation: Any) -> list[Any]:
    """The graphs of the functions that an operation runs, if known: all arms of a conditional, for lanes take each."""
    if not _has_functions(operation.type):  # to read the attributes takes long: constants are among them
        return []
    names: list[str] = []
    for attribute in operation.node_def.attr.values():
        names += filter(None, [attribute.func.name, *(function.name for function in attribute.list.func)])
    return [body for name in names if (body := _body(operation, name)) is not None]


@functools.lru_cache(maxsize=4096)
def _has_functions(kind: str) -> bool:
    """Return whether operations of this type have functions among their attributes."""
    known = private.definition(kind)
    return known is None or any(attribute.type in ("func", "list(func)") for attribute in known.attr)


def _body(operation: Any, name: str) -> Any:
    return private.body_of(operation.graph, name)  # a graph's own list of functions has no shapes


def _whole(graph: Any) -> float:
    """The work of a function's graph, all its inputs taken to vary by lane."""
    return work(graph, graph.inputs, graph.outputs)


def _loop(operation: Any) -> float:
    condition = _body(operation, operation.get_attr("cond").name)
    body = _body(operation, operation.get_attr("body").name)
    if condition is None or body is None:
        return _elements(operation)
    return (_whole(condition) + _whole(body)) * _turns(operation, condition, body)


def _turns(operation: Any, condition: Any, body: Any) -> float:
    """Return a loop's number of turns: by the first static bound on a counter in its condition, if there is one."""
    pending, bounds = [condition.outputs[0].op], []
    while pending:
        test = pending.pop()
        if test.type in ("LogicalAnd", "Identity"):
            pending += [tensor.op for tensor in test.inputs]
        elif test.type in ("Less", "LessEqual", "Greater", "GreaterEqual"):
            turns = _counted(operation, condition, body, test)
            bounds += [] if turns is None else [turns]
    return min(bounds, default=UNKNOWN_TURNS)


def _counted(operation: Any, condition: Any, body: Any, test: Any) -> float | None:
    """The turns after which `counter < bound` (or `<=`, `>`, `>=`) fails, where start, step and bound are static."""
    sides = [_progress(operation, condition, body, tensor) for tensor in test.inputs]
    if None in sides:
        return None
    (left, left_step), (right, right_step) = sides  # type: ignore[misc]
    distance, step = right - left, left_step - right_step
    if test.type.startswith("Greater"):
        distance, step = -distance, -step
    if step <= 0:
        return None
    return max(0.0, math.floor(distance / step) + 1 if test.type.endswith("Equal") else math.ceil(distance / step))


def _progress(operation: Any, condition: Any, body: Any, tensor: tf.Tensor) -> tuple[float, float] | None:
    """Return start and increment per turn of a scalar in a loop's condition; None if not static."""
    place = _place(condition, tensor)
    if place is None:
        value = _static(tensor)
        return None if value is None else (value, 0.0)
    start, after = _static(operation.inputs[place]), body.outputs[place]
    while after.op.type == "Identity":
        after = after.op.inputs[0]
    if start is None:
        return None
    if _place(body, after) == place:
        return start, 0.0
    if after.op.type in ("AddV2", "Add", "Sub"):
        first, second = after.op.inputs
        if after.op.type != "Sub" and _place(body, second) == place:
            first, second = second, first
        step = _static(second)
        if _place(body, first) == place and step is not None:
            return start, -step if after.op.type == "Sub" else step
    return None


def _place(graph: Any, tensor: tf.Tensor) -> int | None:
    """Return the number of the input of a function's graph that `tensor` is, if any."""
    return next((place for place, each in enumerate(graph.inputs) if each is tensor), None)


def _static(tensor: tf.Tensor) -> float | None:
    value = tf.get_static_value(tensor)
    return None if value is None or value.size != 1 else float(value)


# -- sizes -------------------------------------------------------------------------------------------------------------


def _shape(tensor: tf.Tensor) -> list[int]:
    """The shape of a tensor, axes of unknown length as 1."""
    if tensor.shape.rank is None:
        return []
    return [1 if size is None else size for size in tensor.shape]


def _size(tensor: tf.Tensor) -> int:
    return math.prod(_shape(tensor))


def _elements(operation: Any) -> float:
    """Return the elements read or written, whichever is more: elementwise operations, reductions, copies."""
    return float(max([_size(tensor) for tensor in (*operation.inputs, *operation.outputs)], default=0))


def _transcendental(single: float, double: float) -> Rule:
    """Return the rule of so many units for each element, in float32 (or less) and in float64."""
    return lambda operation: _elements(operation) * (double if operation.outputs[0].dtype == tf.float64 else single)


def _results(operation: Any) -> float:
    """Return the elements written: operations that read no more of a large array than they give."""
    return float(sum(_size(tensor) for tensor in operation.outputs))


def _nothing(operation: Any) -> float:
    """Operations that move no numbers."""
    return 0.0


# -- linear algebra ----------------------------------------------------------------------------------------------------


def _matrix_product(operation: Any) -> float:
    transposed = operation.get_attr("transpose_a" if operation.type == "MatMul" else "adj_x")
    return _size(operation.outputs[0]) * _shape(operation.inputs[0])[-2 if transposed else -1]


def _einsum(operation: Any) -> float:
    """A turn of the innermost loop for each combination of all labels."""
    terms = operation.get_attr("equation").decode().split("->")[0].split(",")
    sizes: dict[str, int] = {}
    broadcast = 1
    for term, tensor in zip(terms, operation.inputs, strict=True):
        shape = _shape(tensor)
        before, dots, after = term.partition("...")
        spread = shape[len(before) : len(shape) - len(after)] if dots else []
        broadcast = max(broadcast, math.prod(spread))
        named = shape[: len(before)] + shape[len(shape) - len(after) :]
        sizes.update(zip(before + after, named, strict=True))
    return float(broadcast * math.prod(sizes.values()))


def _convolution(gradient: tf.Tensor, kernel: Sequence[int], depthwise: bool) -> float:
    """`kernel` is `[height, width, .., channels in, channels out]`, or, depthwise, `[.., channels, multiplier]`."""
    return float(_size(gradient) * math.prod(kernel[:-2] if depthwise else kernel[:-1]))


def _convolve(depthwise: bool = False) -> Rule:
    return lambda operation: _convolution(operation.outputs[0], _shape(operation.inputs[1]), depthwise)


def _convolve_to_input(depthwise: bool = False) -> Rule:
    return lambda operation: _convolution(operation.inputs[2], _shape(operation.inputs[1]), depthwise)


def _convolve_to_filter(depthwise: bool = False) -> Rule:
    return lambda operation: _convolution(operation.inputs[2], _shape(operation.outputs[0]), depthwise)


def _factorise(per_entry: float) -> Rule:
    """`per_entry * m * n * min(m, n)` multiply-adds for each matrix of the first input."""

    def rule(operation: Any) -> float:
        *batch, m, n = _shape(operation.inputs[0])
        return math.prod(batch) * per_entry * m * n * min(m, n)

    return rule


def _solve(factorisation: float, substitution: float) -> Rule:
    """A factorisation of the first input, then substitution in each column of the second."""

    def rule(operation: Any) -> float:
        n = _shape(operation.inputs[0])[-1]
        return _factorise(factorisation)(operation) + substitution * n * _size(operation.inputs[1])

    return rule


def _logarithmic(operation: Any) -> float:
    """Return n log2 n along the last axis: transforms and sorts."""
    shape = _shape(operation.inputs[0])
    return math.prod(shape) * max(1.0, math.log2(max(1, *shape[-1:])))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("While", "StatelessWhile"), _loop),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _matrix_product),
    "Einsum": _einsum,
    **dict.fromkeys(("Conv2D", "Conv3D"), _convolve()),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _convolve_to_input()),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), _convolve_to_filter()),
    "DepthwiseConv2dNative": _convolve(depthwise=True),
    "DepthwiseConv2dNativeBackpropInput": _convolve_to_input(depthwise=True),
    "DepthwiseConv2dNativeBackpropFilter": _convolve_to_filter(depthwise=True),
    **dict.fromkeys(("Cholesky", "MatrixDeterminant", "LogMatrixDeterminant", "Lu"), _factorise(1 / 3)),
    **dict.fromkeys(("MatrixInverse", "CholeskyGrad"), _factorise(1.0)),
    "Qr": _factorise(2.0),  # the factor R, then Q
    "SelfAdjointEigV2": _factorise(9.0),  # tridiagonal form, then some turns of QR with the vectors
    "Svd": _factorise(20.0),  # Golub, Van Loan, "Matrix Computations": both sets of vectors
    "MatrixSolve": _solve(1 / 3, 1.0),
    "MatrixTriangularSolve": _solve(0.0, 0.5),
    "MatrixSolveLs": _solve(1.0, 1.0),
    **dict.fromkeys(
        ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "RFFT", "IRFFT", "TopK", "TopKV2"), _logarithmic
    ),
    **dict.fromkeys(("Erfinv", "Ndtri"), _transcendental(CPU.quantile, CPU.quantile_double)),
    **dict.fromkeys(
        (
            "Gather", "GatherV2", "GatherNd", "ResourceGather", "ResourceGatherNd", "Slice", "StridedSlice",
            "Split", "SplitV", "Unpack", "TensorListGetItem", "TensorListStack",
        ),
        _results,
    ),
    **dict.fromkeys(
        (
            "Identity", "IdentityN", "Reshape", "Squeeze", "ExpandDims", "Shape", "ShapeN", "Size", "Rank", "Const",
            "NoOp", "Placeholder", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics", "EnsureShape",
            "ReadVariableOp", "VariableShape", "ZerosLike", "OnesLike", "TensorListFromTensor", "TensorListReserve",
        ),
        _nothing,
    ),
}  # fmt: skip
"""Operations whose work is not `_elements`. Names that a TensorFlow lacks do no harm."""
