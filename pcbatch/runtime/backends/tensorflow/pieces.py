"""Pieces on the TensorFlow backend: the types they give (`abstract_eval`), running them for all lanes (`vectorize`).

A piece is traced as a function of one example (`traces`); pfor (Agarwal, "Static Automatic Batching in TensorFlow",
ICML 2019) turns the trace into operations on all lanes. `cost` estimates from a trace how much work a lane is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from pcbatch.errors import CompileError, Diagnostic, Span, raise_all
from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.pieces import BatchSensitivity, Leaves, Note, Signature
from pcbatch.runtime.backends.tensorflow import (
    compiling,
    custom_vectorised_ops,
    error_locations,
    flop_estimate,
    gradients,
    graphs,
    native,
    private,
    rules,
    structures,
    traces,
)
from pcbatch.runtime.backends.tensorflow import native as rows_together
from pcbatch.runtime.backends.tensorflow.function_inlining import CASES, CHOICES, Expansion
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, type_of
from pcbatch.runtime.backends.tensorflow.traces import Trace, placeholders, remembering, trace

# -- cond branches -----------------------------------------------------------------------------------------------------
# Conditionals of TensorFlow's under XLA of which lanes take different arms: both for all, and each lane's results.
#
# pfor runs each arm for the lanes that take it, whose number is not known beforehand: XLA compiles little of that, and
# none within a loop. So `Expansion` writes the arms out, as it does where a derivative is taken. A conditional that it
# cannot write out is run lane after lane (`rules.functions.refuse_arms`): an arm may never end for a lane that does not
# take it.

Chosen = tuple[Trace, Sequence[tf.Tensor]]
"""A trace, and the tensors that a piece computes in it: the leaves of its outputs, then the fault sites."""


def written_out(piece: Piece, signature: Signature, traced: Trace, outputs: Sequence[tf.Tensor]) -> Chosen:
    """`traced` and `outputs`, or where they have a conditional that is to be written out, those of a trace without."""
    kinds = CHOICES if graphs.in_outer_xla() else CASES
    if not any(each.type in kinds for each in flop_estimate.in_order(outputs)):
        return traced, outputs
    make = partial(_without, piece, signature)
    found: Chosen = traces.remembered("arms", piece, signature.reads, signature.shared, make)
    return found


def _without(piece: Piece, signature: Signature) -> Any:
    traced = traces.anew(piece, signature.reads, signature.shared)
    outputs = [*traced.leaves(signature.writes), *([traced.site] if piece.sites else [])]
    with traced.graph.as_default(), custom_vectorised_ops.tracing_lane():
        expansion = Expansion(traced.graph, traced.reads, outputs, arms_only=True)
    return traced, [*map(expansion.of, outputs)]


# -- pieces ------------------------------------------------------------------------------------------------------------

_SITE = TensorType("int32")


def abstract_eval(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[Type, ...]:
    """The types of the piece's outputs, found by tracing it.

    Raises PrimitiveError, at the user's line, for operations that fail on these types, and for outputs that are not
    tensors.
    """
    traced = trace(piece, reads, shared)
    types: list[Type] = []
    found: list[Diagnostic] = []
    with traced.graph.as_default():
        for name, value in zip(piece.writes, traced.outputs, strict=True):
            try:
                types.append(_output_type(piece, name, value))
            except CompileError as error:
                found += error.diagnostics
    raise_all(found)
    return tuple(types)


def checked_sites(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> frozenset[int]:
    """The fault sites that the piece checks on such types, found by tracing it."""
    return trace(piece, reads, shared).sites


def cost(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> float:
    """The estimated work of one lane, from the operations that a trace of the piece has; see `flop_estimate`."""
    return sum(cost for _, cost in _costs(piece, reads, shared))


def line_costs(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[float, ...]:
    """The estimated work of one lane, for each line of the piece's body: that of the operations made there."""
    found = [0.0] * len(piece.spans)
    for operation, cost in _costs(piece, reads, shared):
        place = error_locations.line_of_body(piece, operation)
        if place is not None:
            found[place] += cost
    return tuple(found)


def _costs(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> Iterator[tuple[Any, float]]:
    """The operations of a trace of the piece for one lane, and the work of each."""
    traced = trace(piece, reads, shared)
    return flop_estimate.by_operation(traced.graph, traced.reads, _computed(traced))


def together(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> BatchSensitivity:
    """Return how the piece depends on the number of rows that are computed together."""
    traced = trace(piece, reads, shared)
    return rows_together.together(traced.graph, traced.reads, _computed(traced))


def _computed(traced: Any) -> list[Any]:
    """All leaves that a trace of a piece computes, checks included."""
    with traced.graph.as_default():
        types = [type_of(value) for value in traced.outputs]
    return [*traced.leaves(types), *([traced.site] if traced.sites else [])]


def _output_type(piece: Piece, name: str, value: Any) -> Type:
    try:
        type_ = type_of(value)
        if piece.tapes and any(isinstance(leaf, tf.Variable) for leaf in values.flatten(type_, value)):
            message, help = gradients.GOES_ON, gradients.A_VALUE_OF_ITS_OWN
            raise error_locations.error(piece, "PCB415", message, name=name, help=help)
        return type_
    except NotATensorError as what:
        help = "what is not a tensor may be used between two calls, branches or loops, but not be kept across one"
        if isinstance(value, str):
            help = (
                "lanes keep numbers: give each text a number, `START, END = 0, 1`; one that never changes may be a "
                "static argument"
            )
        elif callable(value):
            help = (
                "a function may be used between two calls, branches or loops, or be a static argument if it captures "
                "nothing that lanes compute: hand that over as arguments of its own"
            )
        elif any(map(callable, tf.nest.flatten(value))):
            help = (
                "a list of functions may not be kept across a call, a branch or a loop: go over them where they are "
                "written, `for f in (lambda x: .., g):`, or call each by its name where it is chosen"
            )
        raise error_locations.error(
            piece, "PCB404", f"`{name}` is {what}, which a lane cannot keep", name=name, help=help
        ) from None
    except TypeError as why:
        reason, _, help = str(why).partition("; ")
        raise error_locations.error(piece, "PCB404", f"`{name}`: {reason}", name=name, help=help) from None


def vectorize(
    piece: Piece,
    signature: Signature,
    reads: Sequence[Leaves],
    shared: Sequence[Leaves],
    lanes: Any,
    taking_part: tf.Tensor | None = None,
    note: Note | None = None,
) -> tuple[list[list[tf.Tensor]], tf.Tensor | None]:
    """Run `piece` for every lane: `(outputs, site)`, see `pieces.Pieces.vectorize`.

    `lanes` is their number, an int or an int32 scalar. Raises PrimitiveError for operations that cannot be batched.
    """
    groups = [[*leaf_types(type_)] for type_ in signature.writes]
    out_types = [*chain(*groups)] + ([_SITE] if piece.sites else [])
    if isinstance(lanes, int) and lanes == 0:
        rows = [tf.zeros([0, *type_.shape], type_.dtype) for type_ in out_types]
    else:
        arrays = [*chain(*reads)], [*chain(*shared)]
        vectorized = partial(_vectorized, piece, signature, *arrays, lanes, taking_part, note)
        if tf.executing_eagerly():
            rows = list(compiling.Traced(lambda: tf.function(vectorized, autograph=False))())
        else:
            rows = list(vectorized())
    known = lanes if isinstance(lanes, int) else None
    for row, leaf_type in zip(rows, out_types, strict=True):
        row.set_shape([known, *leaf_type.shape])
    site = rows.pop() if piece.sites else None
    remaining = iter(rows)
    return [[next(remaining) for _ in group] for group in groups], site


def has_loop(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> bool:
    """Return whether the piece contains a loop."""
    return native.has_loop(trace(piece, reads, shared).graph.get_operations())


def run_one(
    piece: Piece, signature: Signature, reads: Sequence[Leaves], shared: Sequence[Leaves]
) -> tuple[list[list[tf.Tensor]], tf.Tensor | None]:
    """Run `piece` for one lane: `(outputs, site)`, with the fault site plus one of its first failed check, or 0."""
    found = _vectorized(piece, signature, [*chain(*reads)], [*chain(*shared)], None)
    site = found.pop() if piece.sites else None
    remaining = iter(found)
    return [[next(remaining) for _ in leaf_types(type_)] for type_ in signature.writes], site


def native_obstacles(pieces: Sequence[tuple[Piece, Signature, str]]) -> list[tuple[tuple[str, Span | None], ...]]:
    """Return for each piece the operations, as they run in the end, that may not run in a native function.

    Each comes with the place where the user asks for it. Operations are named by the labels of their blocks, by which
    later errors tell where they are.
    """
    found: list[tuple[tuple[str, Span | None], ...]] = []

    def every() -> None:
        graph = tf.compat.v1.get_default_graph()
        for piece, signature, label in pieces:
            with tf.name_scope(f"{label}/"):
                traced = trace(piece, signature.reads, signature.shared)
            whole = custom_vectorised_ops.batched_forms(traced.graph)
            if whole:  # it is for all lanes at once, so nobody calls it for one
                span = next((span for span in piece.spans if span is not None), None)
                found.append(tuple((f"the batched form of {name}", span) for name in dict.fromkeys(whole)))
                continue
            known = len(graph.get_operations())
            taken = _taken_as_they_are(piece, signature)
            if taken is None:
                given = [[placeholders(type_) for type_ in types] for types in (signature.reads, signature.shared)]
                run_one(piece, signature, *given)
            names = dict.fromkeys(native.obstacles([*(taken or ()), *graph.get_operations()[known:]]))
            found.append(tuple((name, _place(piece, signature, name)) for name in names))

    tf.function(partial(remembering, every), jit_compile=True, autograph=False).get_concrete_function()
    return found


def _taken_as_they_are(piece: Piece, signature: Signature) -> list[Any] | None:
    """The operations of a piece if `run_one` takes all of them over as they are, else None."""
    traced = trace(piece, signature.reads, signature.shared)
    given = {id(leaf) for leaf in (*traced.reads, *traced.shared)}
    outputs = [*traced.leaves(signature.writes), *([traced.site] if piece.sites else [])]
    operations = flop_estimate.in_order(outputs, given)
    return operations if all(map(rules.is_taken_as_it_is, operations)) else None


def _place(piece: Piece, signature: Signature, obstacle: str) -> Span | None:
    """The statement that makes an operation of a type that does not run natively; the first where that is unknown."""
    operations = trace(piece, signature.reads, signature.shared).graph.get_operations()
    made = (operation for operation in operations if obstacle in native.obstacles([operation]))
    return error_locations.span_of(piece, next(made, None))


def _vectorized(
    piece: Piece,
    signature: Signature,
    stacked: Sequence[Any],
    same: Sequence[Any],
    lanes: Any,
    taking_part: tf.Tensor | None = None,
    note: Note | None = None,
) -> list[tf.Tensor]:
    """The leaves of the outputs for all lanes, then the fault sites where the piece has checks.

    For one lane, whose values `stacked` are then, where `lanes` is None.
    """
    traced = trace(piece, signature.reads, signature.shared)
    if not traced.sites <= set(piece.sites):
        raise ValueError(f"piece {piece.compiled.__name__} checks {set(traced.sites)}, but declares {piece.sites}")
    outputs: Sequence[tf.Tensor] = [*traced.leaves(signature.writes), *([traced.site] if piece.sites else [])]
    if lanes is not None:
        traced, outputs = written_out(piece, signature, traced, outputs)
    return converted(piece, traced, outputs, [*zip(traced.reads, stacked, strict=True)], same, lanes, taking_part, note)


def converted(
    piece: Piece,
    traced: Trace,
    outputs: Sequence[tf.Tensor],
    stacked: rules.Pairs,
    same: Sequence[Any],
    lanes: Any,
    taking_part: tf.Tensor | None = None,
    note: Note | None = None,
) -> list[tf.Tensor]:
    """The tensors `outputs` of a trace of `piece` for all lanes, or for one where `lanes` is None.

    `stacked` pairs tensors of the trace with what they are for the lanes, `same` are the leaves of shared operands.
    """
    given = stacked, [*zip(traced.shared, same, strict=True)]

    def looped(operation: Any) -> None:
        if note is not None:
            kind = operation.type.removeprefix("Stateless")
            note(error_locations.span_of(piece, operation), f"{kind} runs lane after lane")

    try:
        operands = {id(leaf): value for leaf, value in given[1]}
        handles = [(handle, operands[id(leaf)]) for handle, leaf in traced.handles]
        if lanes is None:
            return rules.taken_over(traced.graph, outputs, [*chain(*given)], handles, traced.failures, is_native=True)
        lane = rules.Lane(traced.failures, taking_part, looped)
        return rules.vectorized(traced.graph, outputs, *given, handles, lanes, lane)
    except CompileError:
        raise
    except rules.RefusedError as error:
        raise error_locations.unbatched(piece, [error.operation], error.reason) from None
    except Exception as error:
        operations = [*private.operations_being_converted(error)]
        if not operations:
            raise
        raise error_locations.unbatched(piece, operations, error) from None


# -- unsigned ----------------------------------------------------------------------------------------------------------
# Pieces with numbers of uint64, evaluated at once for one lane: in a graph.
#
# Outside of graphs TensorFlow makes another uint64 of a negative int of Python's, or raises, where in a graph it wraps.
# Such ints are constants of a piece, and what it reads from around it: of literals alone it is seen in the code.

NAME = "uint64"
_known: WeakKeyDictionary[Piece, bool] = WeakKeyDictionary()


def has_uint64(piece: Piece, reads: Sequence[Any], shared: Sequence[Any]) -> bool:
    """Return whether a piece reads such a number, or names the dtype; the types that it reads are always the same."""
    if piece not in _known:
        _known[piece] = any(map(_is_of_uint64, (*reads, *shared))) or _names_it(piece.compiled.__code__)
    return _known[piece]


def _is_of_uint64(value: Any) -> bool:
    try:
        return any(leaf.dtype == NAME for leaf in leaf_types(structures.type_of(value)))
    except (TypeError, NotATensorError):  # what an interpreter keeps beside values of lanes
        return False


def _names_it(code: CodeType) -> bool:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return NAME in code.co_names or NAME in code.co_consts or any(map(_names_it, inner))


def evaluate(piece: Piece, reads: Sequence[Any], shared: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
    """The outputs of the piece, and the fault site that fails first plus one, or 0."""
    types = _types(reads, shared)
    signature = Signature(*types, abstract_eval(piece, *types))
    given = [
        [structures.leaf_tensors(*each) for each in zip(*pair, strict=True)]
        for pair in zip((reads, shared), types, strict=True)
    ]

    def run() -> Any:
        rows, site = run_one(piece, signature, *given)
        return [*chain(*rows)], tf.constant(0) if site is None else site

    found, site = tf.function(run, autograph=False)()
    leaves = iter(found)
    groups = [[next(leaves) for _ in leaf_types(type_)] for type_ in signature.writes]
    outputs = (
        structures.wrap(values.pack(type_, group), type_) for type_, group in zip(signature.writes, groups, strict=True)
    )
    return tuple(outputs), int(site)


def _types(reads: Sequence[Any], shared: Sequence[Any]) -> tuple[list[Type], list[Type]]:
    return [*map(structures.type_of, reads)], [*map(structures.type_of, shared)]
