"""The types of single operations, found by calling each on symbols: placeholders in one graph, which nobody runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.types import Type
from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, gradients, graphs, private, purity
from pcbatch.runtime.backends.tensorflow.recorder import recording, watch
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, ShapeError, is_of_keras, type_of, wrap
from pcbatch.runtime.backends.tensorflow.traces import placeholders
from pcbatch.runtime.backends.tensorflow.weak import SizeError, Weak, carrier


class Symbols:
    """A graph in which operations are tried. `tapes` says whether the user's code may take gradients."""

    def __init__(self, tapes: bool = False):
        self._graph = private.watched_graph("reading", self._watch)
        self._tapes = tapes
        self._known: dict[Type, Any] = {}
        self._is_suspect = False
        """True if an operation that may be impure, or takes sizes, was made since the last check."""
        self._checked = 0
        """Number of the graph's operations that have been checked."""
        self._draws: list[Any] = []
        """Draws of random numbers that nothing has used yet."""

    def _watch(self, kind: str, inputs: Sequence[tf.Tensor], attributes: Mapping[str, Any]) -> Sequence[tf.Tensor]:
        self._is_suspect = self._is_suspect or kind in PLACES or purity.is_suspect(kind)
        return watch(kind, inputs, attributes)

    def symbol(self, type_: Type, *, own: bool = False) -> Any:
        """A value of this type: one for all that ask, or one of the caller's `own`."""
        if own or type_ not in self._known:
            with self._graph.as_default():
                found = wrap(values.pack(type_, placeholders(type_)), type_)
            if own:
                return found
            self._known[type_] = found
        return self._known[type_]

    def called(self, make: Callable[[], Any]) -> tuple[Any, bool]:
        """Call `make`, which applies operations to symbols; return its result and whether it may fail a lane.

        PieceRefusalError where an operation is impure, SizeError where a lane's number is a size.
        """
        with (
            self._graph.as_default(),
            graphs.keeping_scope(),
            custom_vectorised_ops.tracing_lane(),
            gradients.taping(self._tapes),
            recording() as recorder,
        ):
            made: list[Any] = []
            try:
                found = make()
            finally:
                if self._is_suspect:
                    made = self._graph.get_operations()[self._checked :]
                    self._is_suspect, self._checked = False, self._checked + len(made)
            if self._draws:
                purity.check_used(self._draws, found)
            self._draws += purity.check(made, found)
            check_sizes(made)
        return found, bool(recorder.sites)

    def type_of(self, value: Any) -> Type | None:
        """The type of a number or an array that an operation has given; None for everything else."""
        if not (is_value(value) or is_of_keras(value)):
            return None
        with self._graph.as_default():
            try:
                return type_of(value)
            except NotATensorError:
                return None

    def made_of(self, values: Sequence[Any], given: Sequence[Any]) -> Hashable:
        """A key that is the same for values that the same operations have made of symbols, each `given` in its turn."""
        wanted, symbols = ([carrier(each) for each in row] for row in (values, given))
        numbers = {each.op.name: place for place, each in enumerate(symbols)}
        needed = {each.op.name for each in wanted}
        waiting = [each.op for each in wanted]
        while waiting:
            for each in waiting.pop().inputs:
                if each.op.name not in needed | numbers.keys():
                    needed.add(each.op.name)
                    waiting.append(each.op)
        rows: list[Any] = []
        for operation in self._graph.get_operations():
            if operation.name in needed - numbers.keys():
                inputs = tuple((numbers[each.op.name], each.value_index) for each in operation.inputs)
                attributes = ((name, each.SerializeToString()) for name, each in operation.node_def.attr.items())
                rows.append((operation.type, inputs, tuple(sorted(attributes))))
                numbers[operation.name] = len(numbers)
        return tuple((numbers[each.op.name], each.value_index) for each in wanted), tuple(rows)

    def why_part(self, value: Any) -> Exception | None:
        """Return the reason why no variable can hold a result: a tensor of unknown shape, a sparse one."""
        is_tensor = isinstance(value, tf.Tensor) and tf.is_symbolic_tensor(value)
        if not is_tensor and not isinstance(value, tf.SparseTensor | tf.RaggedTensor):
            return None
        with self._graph.as_default():
            try:
                type_of(value)
            except (NotATensorError, ShapeError) as error:
                return error
        return None

    def is_written(self, value: Any) -> bool:
        """Return whether the result of an operation is an object that later operations write to."""
        return isinstance(value, tf.TensorArray)

    @contextlib.contextmanager
    def entered(self, manager: Any) -> Iterator[Any]:
        """Enter a context manager of the library around operations on symbols."""
        with self._graph.as_default(), manager as found:
            yield found


def is_value(value: Any) -> bool:
    """Return whether `value` is a lane's, and no number of Python's."""
    return isinstance(value, Weak | tf.Tensor | tf.Variable | tf.IndexedSlices)


# Numbers of a lane on which shapes depend: the dimensions of `tf.ones`, the axis of a sum.
#
# TensorFlow takes such numbers as tensors, so that a trace says nothing is wrong; all lanes at once have one shape.

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


def check_sizes(made: Iterable[Any]) -> None:
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
