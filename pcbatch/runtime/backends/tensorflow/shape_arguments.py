"""Numbers of a lane on which shapes depend: the dimensions of `tf.ones`, the axis of a sum.

TensorFlow takes such numbers as tensors, so that a trace says nothing is wrong; all lanes at once have one shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

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


def check(made: Iterable[Any]) -> None:
    """Raise SizeError where an operation takes a lane's number for a size of its outputs."""
    for operation in made:
        if operation.type in PLACES and not _is_known(operation):
            for place in PLACES[operation.type]:
                size = operation.inputs[place]
                if tf.get_static_value(size) is None and _is_of_lane(size):
                    raise SizeError("a number that differs from lane to lane is used as a size", size)


def _is_known(operation: Any) -> bool:
    """Return whether the shapes of an operation's results are known whatever its numbers are.

    Of one dimension that is not given TensorFlow says what it must be, so that a lane's number is only checked against
    that: XLA compiles no such check.
    """
    return operation.type != "Reshape" and all(output.shape.is_fully_defined() for output in operation.outputs)


def _is_of_lane(size: tf.Tensor) -> bool:
    """Return whether a tensor is computed from the elements of a symbol, and not from shapes alone."""
    pending, seen = [size.op], set()
    while pending:
        operation = pending.pop()
        if operation.type == "Placeholder":
            return True
        if id(operation) not in seen and operation.type not in _SHAPES_ONLY:
            seen.add(id(operation))
            pending += [each.op for each in operation.inputs]
    return False
