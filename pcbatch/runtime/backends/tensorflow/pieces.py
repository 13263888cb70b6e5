"""Pieces on the TensorFlow backend: the types they give (`abstract_eval`), running them for all lanes (`vectorize`).

A piece is traced as a function of one example; pfor (Agarwal, "Static Automatic Batching in TensorFlow", ICML 2019)
turns the trace into operations on all lanes. `cost` estimates from a trace how much work a lane is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pcbatch.diagnostics import CompileError, Diagnostic, raise_all
from pcbatch.ir.types import TensorType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime import values
from pcbatch.runtime.backends.tensorflow import blame, marked, purity, rules, work
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, leaf_tensors, type_of, wrap
from pcbatch.runtime.table import Piece

_SITE = TensorType("int32")


def abstract_eval(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[Type, ...]:
    """The types of the piece's outputs, found by tracing it in a graph that is thrown away.

    Raises PrimitiveError, at the user's line, for operations that fail on these types, for impure ones, and for outputs
    that are not tensors.
    """
    graph = _piece_graph()
    with graph.as_default(), recording():
        outputs = _call(piece, [_placeholders(type_) for type_ in reads], [_placeholders(type_) for type_ in shared])
        types: list[Type] = []
        found: list[Diagnostic] = []
        for name, value in zip(piece.writes, outputs, strict=True):
            try:
                types.append(_output_type(piece, name, value))
            except CompileError as error:
                found += error.diagnostics
    raise_all(found)
    purity.check(piece, graph)
    return tuple(types)


def checked_sites(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> frozenset[int]:
    """The fault sites that the piece checks on such types, found by tracing it as `abstract_eval` does."""
    with _piece_graph().as_default(), recording() as recorder:
        _call(piece, [_placeholders(type_) for type_ in reads], [_placeholders(type_) for type_ in shared])
    return frozenset(recorder.sites)


def cost(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> float:
    """The estimated work of one lane, from the operations that a trace of the piece has; see `work`."""
    return sum(cost for _, cost in _costs(piece, reads, shared))


def line_costs(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[float, ...]:
    """The estimated work of one lane, for each line of the piece's body: that of the operations made there."""
    found = [0.0] * len(piece.spans)
    for operation, cost in _costs(piece, reads, shared):
        place = blame.line_of_body(piece, operation)
        if place is not None:
            found[place] += cost
    return tuple(found)


def _costs(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> list[tuple[Any, float]]:
    """The operations of a trace of the piece for one lane, and the work of each."""
    graph = _piece_graph()
    with graph.as_default(), recording() as recorder:
        lane = [_placeholders(type_) for type_ in reads]
        outputs = _call(piece, lane, [_placeholders(type_) for type_ in shared])
        types = [type_of(value) for value in outputs]
        found = [leaf for value, type_ in zip(outputs, types, strict=True) for leaf in leaf_tensors(value, type_)]
        inputs = [leaf for value, type_ in zip(lane, reads, strict=True) for leaf in leaf_tensors(value, type_)]
        return list(work.by_operation(graph, inputs, [*found, recorder.site()]))


def _piece_graph() -> Any:
    """A graph to trace a piece in and throw away."""
    from tensorflow.python.framework.func_graph import FuncGraph

    return FuncGraph("piece")


def _placeholders(type_: Type) -> Any:
    leaves = [tf.compat.v1.placeholder(leaf.dtype, leaf.shape) for leaf in leaf_types(type_)]
    return wrap(values.pack(type_, leaves), type_)


def _output_type(piece: Piece, name: str, value: Any) -> Type:
    try:
        return type_of(value)
    except NotATensorError as what:
        help = "what is not a tensor may be used between two calls, branches or loops, but not be kept across one"
        if isinstance(value, str):
            help = (
                "lanes keep numbers: give each text a number, `START, END = 0, 1`; one that never changes may be a "
                "static argument"
            )
        raise blame.error(
            piece, "PCB404", f"`{name}` is {what}, which a lane cannot keep", name=name, help=help
        ) from None
    except TypeError as why:
        reason, _, help = str(why).partition("; ")
        raise blame.error(piece, "PCB404", f"`{name}`: {reason}", name=name, help=help) from None


def _call(piece: Piece, reads: Sequence[Any], shared: Sequence[Any]) -> tuple[Any, ...]:
    """Trace the piece; whatever the user's code raises becomes a PrimitiveError at the user's line."""
    try:
        return piece.function(*reads, *shared)
    except CompileError:
        raise
    except Exception as error:
        raise blame.traced(piece, error) from None


def vectorize(
    piece: Piece,
    reads: Sequence[Any],
    shared: Sequence[Any],
    types: Sequence[Type],
    read_types: Sequence[Type],
    lanes: Any,
) -> tuple[list[Any], tf.Tensor | None]:
    """Run `piece` for every lane: `(outputs, site)`, see `protocol.Backend.vectorize`.

    `lanes` is their number, an int or an int32 scalar. Raises PrimitiveError for operations that cannot be batched.
    """
    stacked = [leaf for type_, value in zip(read_types, reads, strict=True) for leaf in values.flatten(type_, value)]
    out_types = [leaf for type_ in types for leaf in leaf_types(type_)] + ([_SITE] if piece.sites else [])
    if isinstance(lanes, int) and lanes == 0:
        rows = [tf.zeros([0, *type_.shape], type_.dtype) for type_ in out_types]
    elif stacked:
        rows = _vectorized(piece, stacked, shared, types, read_types, lanes)
    else:
        without_leaves = [wrap(values.pack(type_, []), type_) for type_ in read_types]
        once = _one_lane(piece, without_leaves, shared, types)
        rows = [tf.broadcast_to(leaf, tf.concat([[lanes], leaf.shape], axis=0)) for leaf in once]
    known = lanes if isinstance(lanes, int) else None
    for row, leaf_type in zip(rows, out_types, strict=True):
        row.set_shape([known, *leaf_type.shape])
    site = rows.pop() if piece.sites else None
    remaining = iter(rows)
    return [values.pack(type_, [next(remaining) for _ in leaf_types(type_)]) for type_ in types], site


def _one_lane(piece: Piece, reads: Sequence[Any], shared: Sequence[Any], types: Sequence[Type]) -> list[tf.Tensor]:
    """The leaves of the outputs for one lane, then the fault site where the piece has checks."""
    with recording() as recorder:
        outputs = _call(piece, reads, shared)
    if not recorder.sites <= set(piece.sites):
        raise ValueError(f"piece {piece.function.__name__} checks {recorder.sites}, but declares {piece.sites}")
    leaves = [leaf for type_, value in zip(types, outputs, strict=True) for leaf in leaf_tensors(value, type_)]
    return [*leaves, recorder.site()] if piece.sites else leaves


def _of_this_graph(leaf: tf.Tensor) -> tf.Tensor:
    """`leaf`, brought into the graph that is being built if it comes from outside: pfor cannot take it from there."""
    return leaf if getattr(leaf, "graph", None) is tf.compat.v1.get_default_graph() else tf.identity(leaf)


def _vectorized(
    piece: Piece,
    stacked: Sequence[tf.Tensor],
    shared: Sequence[Any],
    types: Sequence[Type],
    read_types: Sequence[Type],
    lanes: Any,
) -> list[tf.Tensor]:
    def one_lane(lane: tf.Tensor) -> list[tf.Tensor]:
        remaining = iter(tf.gather(leaf, lane) for leaf in stacked)  # pfor knows this gather: it takes the leaf itself
        reads = [wrap(values.pack(t, [next(remaining) for _ in leaf_types(t)]), t) for t in read_types]
        with marked.tracing_lane():
            return [_of_this_graph(leaf) for leaf in _one_lane(piece, reads, shared, types)]

    def all_lanes() -> list[tf.Tensor]:
        try:
            with rules.quiet():
                return rules.pfor(one_lane, lanes)
        except CompileError:
            raise
        except Exception as error:
            operations = rules.failing_operations(error)
            if not operations:
                raise
            raise blame.unbatched(piece, operations, error) from None

    return list(tf.function(all_lanes, autograph=False)() if tf.executing_eagerly() else all_lanes())
