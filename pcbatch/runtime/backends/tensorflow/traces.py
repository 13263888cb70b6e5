"""Pieces traced for one example: their types, checks and costs are read from a trace, and all lanes computed by it.

A trace lies in a graph of its own, apart from the program's. While a program is traced (`remembering`), each piece is
traced once: for its cost, and for every number of rows that its block may run on. What is found out about pieces
before there is a program (`once`) is found by traces that the program can have.

For its derivative a trace is taken apart: into shared values, where they meet a lane's, and residuals.
Between the way forward and the way back lies a *cut*: tensors that are kept of every row, from which all else is
computed again. Elementwise work is, for it costs less than to write and read its result; results of products, of
reductions and of lookups are kept, or, where these are no more, of exponentials and the like, which need not be
computed again then. What is made of shared operands alone is never kept. Parts of an array are kept as the array that
they are parts of, where that is no more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import tensorflow as tf

from pcbatch.errors import CompileError, MissingError, PieceRefusalError
from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.tensorflow import (
    custom_vectorised_ops,
    error_locations,
    flop_estimate,
    gradients,
    graphs,
    private,
    raw_ops,
    xla_cpu,
)
from pcbatch.runtime.backends.tensorflow.recorder import recording, watch
from pcbatch.runtime.backends.tensorflow.rules.straight import ELEMENTWISE
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors, type_of, wrap

Pairs = Sequence[tuple[tf.Tensor, tf.Tensor]]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Trace:
    """The trace of a `piece` for one example.

    `reads` and `shared` are the placeholders of the leaves of what it reads, `outputs` its results. `variables` pairs
    the handles of variables with those among `shared` that stand for what is read from them. `sites` are the fault
    sites that it checks, `failures` whether each check fails, in order.
    """

    piece: Piece
    graph: Any
    reads: Sequence[tf.Tensor]
    shared: Sequence[tf.Tensor]
    outputs: tuple[Any, ...]
    variables: Pairs
    sites: frozenset[int]
    failures: Sequence[tf.Tensor]
    first_site: Callable[[], tf.Tensor]

    @property
    def handles(self) -> Pairs:
        """The graph's present handles of variables, each with the placeholder for its value.

        Results that are variables as they are, `h = H0`, are read where `leaves` makes tensors of them.
        """
        places = {id(outer): leaf for outer, leaf in self.variables}
        return [(inner, places[id(outer)]) for outer, inner in private.captures(self.graph) if id(outer) in places]

    @cached_property
    def site(self) -> tf.Tensor:
        """The first of `sites` that fails plus one, or 0."""
        with self.graph.as_default():
            return self.first_site()

    def leaves(self, types: Sequence[Type]) -> list[tf.Tensor]:
        """The leaves of the outputs as tensors of the trace's graph, of exactly these types."""
        with self.graph.as_default():
            named = list(zip(self.piece.writes, types, self.outputs, strict=True))
            leaves = [(name, leaf) for name, type_, value in named for leaf in leaf_tensors(value, type_)]
            return [self._captured(name, leaf) for name, leaf in leaves]

    def _captured(self, name: str, leaf: tf.Tensor) -> tf.Tensor:
        try:
            return private.capture(self.graph, leaf)
        except PieceRefusalError as error:
            raise error_locations.error(self.piece, error.code, error.message, name=name, help=error.help) from None


_remembered: ContextVar[dict[Any, Any] | None] = ContextVar("remembered", default=None)
_for_xla: ContextVar[bool] = ContextVar("for_xla", default=False)
"""True while a trace outside of a program is made for one that XLA compiles."""


def remembering(function: Callable[..., Any], *arrays: Any) -> Any:
    """`function(*arrays)`, in which no piece is traced twice for the same types, nor again that has been around it.

    It is pcbatch's; the user's code runs in pieces, and in their forms for all lanes.
    """
    known = _remembered.get()
    token = _remembered.set({} if known is None else known)
    try:
        with private.short_stacks(), raw_ops.reusing():
            return function(*arrays)
    finally:
        _remembered.reset(token)


@contextlib.contextmanager
def once(known: dict[Any, Any] | None = None, jit: bool = False) -> Iterator[None]:
    """Trace no piece twice inside for the same types, nor one with a `known` trace; new traces are added.

    With `jit` they are traced as for a program that XLA compiles.
    """
    token, before = _remembered.set({} if known is None else known), _for_xla.set(jit)
    try:
        yield
    finally:
        _remembered.reset(token)
        _for_xla.reset(before)


def ahead(given: Iterable[tuple[Piece, Sequence[Type], Sequence[Type], str]]) -> None:
    """Trace pieces, of blocks with these labels, one after the other: it takes less time than each by itself."""

    def every() -> None:
        for piece, reads, shared, label in given:
            with tf.name_scope(f"{label}/"):
                trace(piece, reads, shared)

    _under_xla(every) if _for_xla.get() else every()


def _under_xla(make: Callable[[], T]) -> T:
    """Call `make` inside a function that XLA compiles."""
    found: list[T] = []
    scope = tf.get_current_name_scope()

    def inside() -> None:
        with tf.name_scope(f"{scope}/" if scope else ""):
            found.append(make())

    tf.function(inside, jit_compile=True, autograph=False).get_concrete_function()
    return found[0]


def trace(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> Trace:
    """The trace of `piece` for such types; whatever the user's code raises is a PrimitiveError at the user's line."""
    found: Trace = remembered("trace", piece, reads, shared, lambda: anew(piece, reads, shared))
    return found


def remembered(kind: str, piece: Piece, reads: Sequence[Type], shared: Sequence[Type], make: Callable[[], Any]) -> Any:
    """Return `make()`, made once for `piece` and such types where results are remembered."""
    known = _remembered.get()
    if known is None:
        return make()
    in_xla = graphs.in_outer_xla()
    key = kind, piece, tuple(reads), tuple(shared), in_xla or _for_xla.get(), xla_cpu.is_on()
    if key not in known:
        known[key] = _under_xla(make) if _for_xla.get() and not in_xla else make()
    return known[key]


def anew(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> Trace:
    """The same, in a graph that nobody else reads: gradients may be added to it."""
    scope = tf.get_current_name_scope()  # by which errors tell the block that an operation comes from
    graph = private.watched_graph("piece", watch)
    with (
        graph.as_default(),
        graphs.keeping_scope(),
        tf.name_scope(scope),
        custom_vectorised_ops.tracing_lane(),
        gradients.taping(piece.tapes),
        recording() as recorder,
    ):
        lane, same = [[placeholders(type_) for type_ in types] for types in (reads, shared)]
        given = _known(piece, graph, same)
        operands = [
            wrap(values.pack(type_, leaves), type_)
            for type_, leaves in zip((*reads, *shared), (*lane, *given), strict=True)
        ]
        try:
            outputs = piece.compiled(*operands[: len(operands) - piece.unnamed])
        except (CompileError, MissingError):
            raise
        except Exception as error:
            raise error_locations.traced(piece, error) from None
        leaves = [*chain(*lane)], [*chain(*same)]
        sites = frozenset(recorder.sites)
        return Trace(piece, graph, *leaves, outputs, _variables(given, same), sites, recorder.failures, recorder.site)


def with_kept(piece: Piece, shared: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The leaves of each shared operand of `piece`, those that it keeps in place of their present values."""
    found = []
    for name, leaves in zip(piece.shared, shared, strict=True):
        kept = piece.kept.get(name, [None] * len(leaves))
        found.append([leaf if known is None else known for leaf, known in zip(leaves, kept, strict=True)])
    return found


def _known(piece: Piece, graph: Any, shared: Sequence[Sequence[tf.Tensor]]) -> list[list[Any]]:
    """Return the arguments of `piece` for its shared operands' placeholders: variables for values read from them.

    A tensor that it keeps is one to a tape, whatever names it is captured by: one placeholder stands for it, which
    `graph` gives to helpers, too.
    """
    given: list[list[Any]] = []
    places: dict[int, tf.Tensor] = {}
    for leaves, known in zip(shared, with_kept(piece, shared), strict=True):
        given.append([])
        for placeholder, array in zip(leaves, known, strict=True):
            if array is placeholder or not tf.is_tensor(array):
                given[-1].append(placeholder)
            elif isinstance(array, tf.Variable):
                given[-1].append(array)
            else:
                if id(array) not in places:
                    places[id(array)] = placeholder
                    private.let_stand_for(graph, array, placeholder)
                given[-1].append(places[id(array)])
    return given


def _variables(given: Sequence[Sequence[Any]], shared: Sequence[Sequence[tf.Tensor]]) -> Pairs:
    """Return the handles of variables among a piece's operands, each with the placeholder that it replaces."""
    pairs = zip(chain(*given), chain(*shared), strict=True)
    return [(array.handle, leaf) for array, leaf in pairs if isinstance(array, tf.Variable)]


def captured(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> list[Any]:
    """The variables and tensors of floats that a trace of `piece` takes from outside on its own."""
    traced = trace(piece, reads, shared)
    with traced.graph.as_default():
        traced.leaves([type_of(value) for value in traced.outputs])  # what a helper gives may be what it captures
    known = {id(handle) for handle, _ in traced.handles} | {id(leaf) for leaf in traced.shared}
    variables = {id(variable.handle): variable for variable in private.variables_read(traced.graph)}
    taken = [outer for outer, inner in private.captures(traced.graph) if id(inner) not in known]
    found = [variables.get(id(outer), outer) for outer in taken]
    return [each for each in found if each.dtype.is_floating or each.dtype.is_complex]


def placeholders(type_: Type) -> list[tf.Tensor]:
    """Placeholders for the leaves of a value."""
    return [raw_ops.placeholder(tf.as_dtype(leaf.dtype), leaf.shape) for leaf in leaf_types(type_)]


# -- partition ---------------------------------------------------------------------------------------------------------


PRODUCTS = frozenset(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Einsum", "MatMul"))
"""Operations of which one product over all rows gives the gradient by an operand that they share."""

LOOKUPS = frozenset(("GatherV2", "ResourceGather"))

_COMPUTED_AGAIN = ELEMENTWISE | {
    "BroadcastTo", "ConcatV2", "ExpandDims", "Fill", "IdentityN", "Maximum", "Minimum", "OnesLike", "Pack", "PadV2",
    "Pad", "PreventGradient", "Range", "Rank", "Relu", "Relu6", "Reshape", "ReverseV2", "Select", "Shape", "Size",
    "Softplus", "Squeeze", "Tile", "Transpose", "Unpack", "ZerosLike",
}  # fmt: skip

_COSTLY = frozenset((
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Cos", "Cosh", "Digamma", "Erf", "Erfc", "Exp", "Expm1",
    "Lgamma", "Log", "Log1p", "Pow", "Sigmoid", "Sin", "Sinh", "Softplus", "Tan", "Tanh",
))  # fmt: skip
"""Elementwise operations that take as long as many others."""
_PARTS = frozenset(("Slice", "Split", "SplitV", "StridedSlice", "Unpack"))
"""Operations that give parts of an array."""


def makes_functions(operations: Sequence[Any]) -> bool:
    """Return whether any operation runs functions: for its gradient it may be replaced by one with more results."""
    return any(flop_estimate.bodies(operation) for operation in operations)


@dataclass(frozen=True)
class SharedUse:
    """An operation some of whose inputs are shared, with a gradient that is wanted (`inputs`: their places)."""

    operation: Any
    inputs: tuple[int, ...]

    @property
    def is_product(self) -> bool:
        """True if the gradient by the shared input is one product over all rows."""
        return self.operation.type in PRODUCTS and len(self.inputs) == 1

    @property
    def is_lookup(self) -> bool:
        """True if the shared input is a table whose rows (of its first axis) are looked up."""
        operation = self.operation
        if operation.type not in LOOKUPS or self.inputs != (0,) or operation.get_attr("batch_dims") != 0:
            return False
        return operation.type == "ResourceGather" or tf.get_static_value(operation.inputs[2]) == 0

    @property
    def of_lane(self) -> tuple[int, ...]:
        """The places of the inputs of which rows have their own, as the gradient by the shared one needs them."""
        return (1,) if self.is_lookup else tuple(n for n in range(len(self.operation.inputs)) if n not in self.inputs)


class Anatomy:
    """The operations of a trace before gradients are added to it, and their dependences."""

    def __init__(self, traced: Trace, outputs: Sequence[tf.Tensor], wanted: Collection[int]):
        """`wanted` are the places among `traced.shared` of which gradients are wanted."""
        self.names = frozenset(operation.name for operation in traced.graph.get_operations())
        self.operations = flop_estimate.in_order(outputs)
        self.reads = {id(tensor) for tensor in traced.reads}
        self.leaves = [traced.shared[place] for place in wanted]
        places = {id(leaf): place for place, leaf in enumerate(traced.shared)}
        self.roots = [*((leaf, places[id(leaf)]) for leaf in self.leaves)]
        self.roots += [(handle, places[id(leaf)]) for handle, leaf in traced.handles if places[id(leaf)] in set(wanted)]
        """The sources of gradients by shared operands: placeholders and handles, with the operand's place."""
        self.of_lane, self.of_wanted = set(self.reads), {id(root) for root, _ in self.roots}
        for operation in self.operations:
            for group in (self.of_lane, self.of_wanted):
                if any(id(tensor) in group for tensor in operation.inputs):
                    group.update(map(id, operation.outputs))

    def is_shared(self, tensor: tf.Tensor) -> bool:
        """Return whether a tensor is made of shared operands alone, at least one of whose gradients is wanted."""
        return id(tensor) in self.of_wanted and id(tensor) not in self.of_lane

    def meetings(self) -> Iterator[SharedUse]:
        """Yield the operations at which a shared value meets a lane's."""
        for operation in self.operations:
            places = tuple(n for n, tensor in enumerate(operation.inputs) if self.is_shared(tensor))
            if places and any(id(output) in self.of_lane for output in operation.outputs):
                yield SharedUse(operation, places)

    def cut(self, targets: Sequence[tf.Tensor], seeds: Sequence[tf.Tensor], *, reads_only: bool) -> list[tf.Tensor]:
        """Return the tensors to keep so that `targets` can be computed from them, shared operands and `seeds`.

        It is `reads_only` that are kept where operations must run again as a whole.
        """
        given = set(map(id, seeds))
        kept = self._cut(targets, given, reads_only=reads_only)
        if reads_only:
            return [*kept.values()]
        kept, other = self._whole(kept), self._whole(self._with_costly(targets, given))
        return [*(other if _bytes(other.values()) <= _bytes(kept.values()) else kept).values()]

    def _cut(
        self, targets: Sequence[tf.Tensor], given: Collection[int], *, reads_only: bool = False, costly: bool = False
    ) -> dict[int, tf.Tensor]:
        """Return a cut; with `costly`, costly results are kept, too."""
        kept: dict[int, tf.Tensor] = {}
        pending, seen = [*targets], set[int]()
        while pending:
            tensor = pending.pop()
            if id(tensor) in seen or id(tensor) in given:
                continue
            seen.add(id(tensor))
            if id(tensor) in self.reads or (not reads_only and self._is_kept(tensor, costly)):
                kept[id(tensor)] = tensor
            else:
                pending += tensor.op.inputs
        return kept

    def _with_costly(self, targets: Sequence[tf.Tensor], given: Collection[int]) -> dict[int, tf.Tensor]:
        """Return the same, and costly results where they cannot be computed from the rest.

        64 small TreeLSTMs of 128 cells take 0.965 of a training step by that, LSTMs of 256 0.98.
        """
        kept, place = self._cut(targets, given, costly=True), {op.name: n for n, op in enumerate(self.operations)}
        found = [tensor for tensor in kept.values() if tensor.op.type in _COSTLY]
        for tensor in sorted(found, key=lambda each: -place.get(each.op.name, 0)):
            others = kept.keys() - {id(tensor)}
            if not self._cut(tensor.op.inputs, {*given, *others}, costly=True):
                del kept[id(tensor)]
        return kept

    def _whole(self, kept: dict[int, tf.Tensor]) -> dict[int, tf.Tensor]:
        """The same with arrays in place of their parts, such as the gates of a cell: one array to write and to read.

        64 small TreeLSTMs of 128 cells and LSTMs of 256 take 0.98 of a training step.
        """
        groups: dict[int, list[tf.Tensor]] = {}
        for tensor in kept.values():
            if tensor.op.type in _PARTS and id(tensor) not in self.reads:
                groups.setdefault(id(tensor.op.inputs[_source(tensor.op)]), []).append(tensor)
        for parts in (each for each in groups.values() if len(each) > 1):
            of_parts = [operand for part in parts for operand in part.op.inputs]
            more = {key: each for key, each in self._cut(of_parts, ()).items() if key not in kept}
            if _bytes(more.values()) <= _bytes(parts):
                gone = set(map(id, parts))
                kept = {key: each for key, each in kept.items() if key not in gone} | more
        return kept

    def _is_kept(self, tensor: tf.Tensor, costly: bool) -> bool:
        if id(tensor) not in self.of_lane or tensor.op.name not in self.names:
            return False
        is_array = tensor.shape.is_fully_defined() and tensor.dtype not in (tf.variant, tf.resource, tf.string)
        return is_array and (tensor.op.type not in _COMPUTED_AGAIN or (costly and tensor.op.type in _COSTLY))


def _source(operation: Any) -> int:
    """The place among the inputs of an operation that gives parts of the array that they are parts of."""
    return 1 if operation.type == "Split" else 0


def _bytes(tensors: Iterable[tf.Tensor]) -> int:
    """The bytes of all elements of some tensors."""
    return sum(tensor.dtype.size * tensor.shape.num_elements() for tensor in tensors)
