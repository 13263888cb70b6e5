"""The types of single operations, found by calling each on symbols: placeholders in one graph, which nobody runs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Number
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import PieceRefusalError
from pcbatch.ir import values
from pcbatch.ir.types import Type
from pcbatch.runtime.backends.tensorflow import custom_vectorised_ops, gradients, graphs, private
from pcbatch.runtime.backends.tensorflow.recorder import recording, watch
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, ShapeError, is_of_keras, type_of, wrap
from pcbatch.runtime.backends.tensorflow.traces import placeholders
from pcbatch.runtime.backends.tensorflow.weak import SizeError, Weak, carrier

# -- purity ------------------------------------------------------------------------------------------------------------
# Operations that would happen once for all lanes, or differ by batch, are refused by their type.


@dataclass(frozen=True)
class _Refusal:
    """The refusal of operations whose type matches `pattern`: message and help."""

    code: str
    pattern: re.Pattern[str]
    message: str
    help: str
    stateful: bool = True
    """True if only operations that TensorFlow marks as stateful are meant."""


def _refusal(code: str, pattern: str, message: str, help: str, stateful: bool = True) -> _Refusal:
    return _Refusal(code, re.compile(pattern), message, help, stateful)


_RANDOM = "draw with `pcbatch.random` from a key that the function is given: `x = pcbatch.random.normal(key)`"
_SEEDED = f"{_RANDOM}; for tf.nn.dropout write `with pcbatch.random.seeded(key):` around it"

_DRAWS = "PCB118"

_REFUSALS = (
    _refusal(
        "PCB118",
        r"Stateless(?!Random(GetKeyCounter|GetAlg|(Uniform|UniformInt|UniformFullInt|Normal)V2)$)"
        r"(Random|Truncated|Multinomial|Parameterized|Sample|Shuffle)",
        "has no rule for a seed per lane; stateless_uniform and stateless_normal have one",
        _RANDOM,
        False,
    ),
    _refusal(
        "PCB118",
        r".*(Random|Multinomial|TruncatedNormal|StatefulUniform|StatefulStandardNormal|Rng).*",
        "draws from hidden state, which would happen once for the whole batch",
        _SEEDED,
    ),
    _refusal(
        "PCB112",
        r"Assign|Resource(Scatter|Apply|SparseApply|StridedSliceAssign)|VarHandleOp|DestroyResource",
        "makes or changes a variable, which would happen for the whole batch",
        "return the new value and assign it outside the batched call; around a layer of Keras that draws, such as "
        "Dropout, write `with pcbatch.random.seeded(key):`",
    ),
    _refusal(
        "PCB119",
        r"Assert$",
        "checks the whole batch, and vanishes under XLA",
        "write `assert condition, message`: it fails the lane",
    ),
    _refusal(
        "PCB119",
        r"Print|StringFormat|LogMessage",
        "writes something, which would happen once for the whole batch",
        'return the value, or let each lane print it: `pcbatch.debug("x = {}", x)`',
    ),
    _refusal(
        "PCB119",
        r"Timestamp",
        "reads a clock, which would happen once for the whole batch",
        "measure outside, around the batched call",
    ),
    _refusal(
        "PCB119",
        r".*File|Write.*Summary|.*Dataset|Iterator",
        "reads or writes something, which would happen once for the whole batch",
        "do it outside, around the batched call",
        False,
    ),
    _refusal("PCB403", r".*PyFunc", "calls back into Python", "write it with TensorFlow's operations"),
)

_READS_ONLY = re.compile(
    r"ReadVariableOp|Resource(Gather|GatherNd)$|VariableShape|VarIsInitializedOp|LookupTableFind|LookupTableSize"
    r"|StatefulPartitionedCall|If$|While$|Case$|Placeholder|XlaLaunch|XlaCallModule"
)
"""Operations that TensorFlow marks as stateful but that neither change anything nor differ from run to run."""


def is_suspect(kind: str) -> bool:
    """Return whether an operation of type `kind` may be impure: itself, or by the functions that it runs."""
    return _refused(kind) is not None or _calls(kind)


def check(operations: Sequence[Any], found: Any) -> list[Any]:
    """Raise a PieceRefusalError for the first of some operations that is impure.

    Draws of random numbers are fine if nothing that was `found` depends on them: a model of other libraries draws
    to learn the shapes of its parts. These operations are returned.
    """
    unused: list[Any] = []
    needed: set[str] | None = None
    for operation in operations:
        for kind in (operation.type, *_kinds_inside(operation)):
            refusal = _refused(kind)
            if refusal is None or (kind == operation.type == "Assert" and _always_holds(operation)):
                continue
            if refusal.code == _DRAWS and kind == operation.type:
                needed = _needed(found) if needed is None else needed
                if operation.name not in needed:
                    unused.append(operation)
                    continue
            raise PieceRefusalError(refusal.code, f"TensorFlow's {kind} {refusal.message}", refusal.help)
    return unused


def check_used(draws: Iterable[Any], found: Any) -> None:
    """Raise a PieceRefusalError where what was `found` depends on some draws that were unused until now."""
    needed = _needed(found)
    check([operation for operation in draws if operation.name in needed], found)


def _needed(found: Any) -> set[str]:
    """The names of all operations that results depend on; unless they are tensors only, they may depend on any."""
    leaves = tf.nest.flatten(found, expand_composites=True)
    tensors = [each.value if isinstance(each, Weak) else each for each in leaves]
    if not all(isinstance(each, _PLAIN) for each in tensors):
        return _Everything()
    symbols = [each for each in tensors if isinstance(each, tf.Tensor) and tf.is_symbolic_tensor(each)]
    return {name for each in symbols for name in _before(each.op)}


_PLAIN = (tf.Tensor, np.ndarray, np.generic, Number, str, type(None))
"""Classes of results in which no tensor can hide."""


class _Everything(set[str]):
    """The set of all names."""

    def __contains__(self, name: object) -> bool:
        return True


def _always_holds(assertion: Any) -> bool:
    """Return whether an assertion's condition is made of constants alone, and true.

    TensorFlow's own functions make such assertions, `tape.batch_jacobian` about the shapes of its arguments.
    """
    condition = assertion.inputs[0]
    operations = _before(condition.op).values()
    if any(op.type.startswith("Placeholder") or _is_stateful(op.type) or _calls(op.type) for op in operations):
        return False
    definition = tf.compat.v1.GraphDef(node=[op.node_def for op in operations])
    definition.versions.CopyFrom(condition.graph.graph_def_versions)

    def value() -> Any:
        return tf.graph_util.import_graph_def(definition, return_elements=[condition.name])

    with tf.init_scope():
        return bool(tf.reduce_all(tf.function(value, autograph=False).get_concrete_function()()))


def _before(operation: Any) -> dict[str, Any]:
    """`operation` and all that its value is made of, by name."""
    found, pending = {operation.name: operation}, [operation]
    while pending:
        for tensor in pending.pop().inputs:
            if tensor.op.name not in found:
                found[tensor.op.name] = tensor.op
                pending.append(tensor.op)
    return found


@cache
def _refused(kind: str) -> _Refusal | None:
    """Return the refusal of operations of type `kind`; None for pure ones."""
    for refusal in _REFUSALS:
        if refusal.pattern.match(kind) and (_is_stateful(kind) or not refusal.stateful):
            return refusal
    if _is_stateful(kind) and not _READS_ONLY.match(kind):
        return _refusal("PCB403", "", "has a side effect or hidden state", "do it outside, around the batched call")
    return None


def _is_stateful(kind: str) -> bool:
    definition = private.definition(kind)
    return definition is not None and definition.is_stateful


@cache
def _calls(kind: str) -> bool:
    """Return whether operations of type `kind` run other functions."""
    definition = private.definition(kind)
    return definition is not None and any(attr.type in ("func", "list(func)") for attr in definition.attr)


def _functions(node: Any) -> Iterator[str]:
    """The names of the functions that an operation or a node of a function runs."""
    attributes = node.node_def.attr if hasattr(node, "node_def") else node.attr
    for attribute in attributes.values():
        yield from filter(None, [attribute.func.name, *(function.name for function in attribute.list.func)])


def _kinds_inside(operation: Any) -> list[str]:
    """The types of all operations inside the functions that an operation runs, however deep."""
    if not _calls(operation.type):
        return []
    graph, bodies = operation.graph, None
    pending, seen = list(_functions(operation)), set()
    kinds: dict[str, None] = {}
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        body = private.body_of(graph, name)
        if body is not None:
            nodes: Iterable[Any] = [each.node_def for each in body.get_operations()]
        else:
            bodies = bodies or {each.signature.name: each for each in graph.as_graph_def().library.function}
            nodes = bodies[name].node_def if name in bodies else ()
        for node in nodes:
            kinds[node.op] = None
            pending.extend(_functions(node))
    return list(kinds)


# -- symbols -----------------------------------------------------------------------------------------------------------


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
        self._is_suspect = self._is_suspect or kind in PLACES or is_suspect(kind)
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
                check_used(self._draws, found)
            self._draws += check(made, found)
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
