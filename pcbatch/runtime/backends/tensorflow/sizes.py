"""On which values of a lane shapes inside a piece depend: the dimensions of `tf.ones`, the axis of a sum.

TensorFlow takes such numbers as tensors, so that a trace says nothing is wrong; all lanes at once have one shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.tensorflow.traces import trace
from pcbatch.runtime.backends.tensorflow.weak import SizeError

_REDUCTIONS = ("All", "Any", "ArgMax", "ArgMin", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
PLACES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_REDUCTIONS, (1,)),
    **dict.fromkeys(("BroadcastTo", "ExpandDims", "OneHot", "Pad", "PadV2", "Reshape", "Tile", "TopKV2"), (1,)),
    "Empty": (0,),
    "Fill": (0,),
    "LinSpace": (2,),
    "MirrorPad": (1,),
    "Range": (0, 1, 2),
    "Transpose": (1,),
}
"""The inputs of operations that say which shape their outputs have."""
_SHAPES_ONLY = {"Shape", "ShapeN", "Size", "Rank"}
"""Operations that know no more of their inputs than their shapes."""


def sizes(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> frozenset[str]:
    """What the piece reads of which some shape depends that is not known without.

    Where it does not run, what Python would need to know of it for that; nothing where that is something else.
    """
    names = [name for name, type_ in zip(piece.reads, reads, strict=True) for _ in leaf_types(type_)]
    try:
        traced = trace(piece, reads, shared)
        pending = list(_sizes(traced.graph))
        leaves = [leaf.op for leaf in traced.reads]
    except Exception as error:  # whatever the user's code raises, for which there is a message already
        size = _wanted(error)
        if not tf.is_symbolic_tensor(size):
            return frozenset()
        pending = [size]
        leaves = [op for op in size.graph.get_operations() if op.type == "Placeholder"][: len(names)]
    owners = {id(leaf): name for name, leaf in zip(names, leaves, strict=True)}
    seen: set[int] = set()
    sized: set[str] = set()
    while pending:
        operation = pending.pop().op
        if id(operation) in seen:
            continue
        seen.add(id(operation))
        if id(operation) in owners:
            sized.add(owners[id(operation)])
        if operation.type not in _SHAPES_ONLY:
            pending += operation.inputs
    return frozenset(sized)


def _wanted(error: BaseException | None) -> Any:
    """The number of a lane's that Python would have to know, if that is what is wrong."""
    while error is not None:
        if isinstance(error, SizeError):
            return error.size
        error = error.__cause__ or error.__context__
    return None


def _sizes(graph: Any) -> Iterator[tf.Tensor]:
    """The tensors that say which shape something has that is not known."""
    for operation in graph.get_operations():
        if operation.type in PLACES and not _is_known(operation):
            given = (operation.inputs[place] for place in PLACES[operation.type])
            yield from (tensor for tensor in given if tf.get_static_value(tensor) is None)


def _is_known(operation: Any) -> bool:
    """Whether the shapes of what an operation gives are known whatever the numbers are.

    Of one dimension that is not given TensorFlow says what it must be, so that a lane's number is only checked against
    that: XLA compiles no such check.
    """
    return operation.type != "Reshape" and all(output.shape.is_fully_defined() for output in operation.outputs)
