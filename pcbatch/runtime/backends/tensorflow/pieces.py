"""Pieces on the TensorFlow backend: the types they give (`abstract_eval`), running them for all lanes (`vectorize`).

A piece is traced as a function of one example; pfor (Agarwal, "Static Automatic Batching in TensorFlow", ICML 2019)
turns the trace into operations on all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pcbatch.diagnostics import CompileError, Diagnostic, raise_all
from pcbatch.ir.types import TensorType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime import values
from pcbatch.runtime.backends.tensorflow import blame, purity, rules
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError, leaf_tensors, type_of, wrap
from pcbatch.runtime.table import Piece

_SITE = TensorType("int32")


def abstract_eval(piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[Type, ...]:
    """The types of the piece's outputs, found by tracing it in a graph that is thrown away.

    Raises PrimitiveError, at the user's line, for operations that fail on these types, for impure ones, and for outputs
    that are not tensors.
    """
    from tensorflow.python.framework.func_graph import FuncGraph

    graph = FuncGraph("piece")
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


def _placeholders(type_: Type) -> Any:
    leaves = [tf.compat.v1.placeholder(leaf.dtype, leaf.shape) for leaf in leaf_types(type_)]
    return wrap(values.pack(type_, leaves), type_)


def _output_type(piece: Piece, name: str, value: Any) -> Type:
    try:
        return type_of(value)
    except NotATensorError as what:
        help = "what is not a tensor may be used between two calls, branches or loops, but not be kept across one"
        raise blame.error(
            piece, "PCB404", f"`{name}` is {what}, which a lane cannot keep", name=name, help=help
        ) from None
    except TypeError as why:
        raise blame.error(piece, "PCB404", f"`{name}`: {why}", name=name) from None


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
        once = _one_lane(piece, [], shared, types)
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
