"""Tangents of pieces: how what a piece writes changes as what it reads does, for one example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import private
from pcbatch.runtime.backends.tensorflow.structures import leaf_tensors
from pcbatch.runtime.backends.tensorflow.weak import Weak


def tangent(piece: Piece, signature: Signature) -> Callable[..., tuple[Any, ...]]:
    """See `pieces.Pieces.tangent`."""
    named = len(piece.shared) - piece.unnamed
    hidden = [piece.kept[name][0] for name in piece.shared[named:]]
    shared = signature.shared[:named]
    function = piece.compiled

    def both(*given: Any) -> tuple[Any, ...]:
        remaining = iter(given)
        reads = [next(remaining) for _ in signature.reads]
        directions = [*_tangents_of(signature.reads, remaining)]
        operands = [next(remaining) for _ in shared]
        directions += [*_tangents_of(shared, remaining), *map(_tensor, remaining)]
        graph = tf.compat.v1.get_default_graph()
        captured = [each if isinstance(each, tf.Variable) else private.capture(graph, each) for each in hidden]
        sources = [*_floats((*signature.reads, *shared), (*reads, *operands)), *captured]
        found, changes = _with_changes(lambda: function(*reads, *operands), signature.writes, sources, directions)
        return *found, *_packed(signature.writes, iter(changes))

    return both


def _with_changes(
    function: Callable[[], tuple[Any, ...]], types: Sequence[Type], sources: list[Any], directions: list[tf.Tensor]
) -> tuple[tuple[Any, ...], list[tf.Tensor]]:
    """The results of a function, and the changes of their float leaves as `sources` change in some `directions`.

    By the derivative of a gradient, which is linear in what comes back: so custom gradients have their say.
    """
    with tf.GradientTape(watch_accessed_variables=False) as outer:
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(sources)
            results = function()
            every = [leaf_tensors(result, type_) for result, type_ in zip(results, types, strict=True)]
            floats = [leaf for leaf in chain(*every) if leaf.dtype.is_floating]
        seeds = [tf.zeros_like(each) for each in floats]
        outer.watch(seeds)
        gradients = inner.gradient(floats, sources, seeds)
        gradients = [tf.convert_to_tensor(each) if isinstance(each, tf.IndexedSlices) else each for each in gradients]
    pairs = [(each, way) for each, way in zip(gradients, directions, strict=True) if each is not None]
    if not pairs:
        return results, [tf.zeros_like(each) for each in floats]
    changes = outer.gradient(
        [each for each, _ in pairs], seeds, [way for _, way in pairs], tf.UnconnectedGradients.ZERO
    )
    return results, [tf.convert_to_tensor(each) for each in changes]


def _tensor(value: Any) -> tf.Tensor:
    return value.value if isinstance(value, Weak) else value


def _floats(types: Sequence[Type], given: Sequence[Any]) -> Iterator[Any]:
    """The float leaves of values, as a tape knows them."""
    for type_, value in zip(types, given, strict=True):
        for leaf, each in zip(leaf_types(type_), values.flatten(type_, value), strict=True):
            if tf.as_dtype(leaf.dtype).is_floating:
                yield _tensor(each)


def _tangents_of(types: Sequence[Type], remaining: Iterator[Any]) -> Iterator[tf.Tensor]:
    """The tangents of the float leaves of values of such types, which come next."""
    for type_ in types:
        count = sum(tf.as_dtype(leaf.dtype).is_floating for leaf in leaf_types(type_))
        if count:
            found = next(remaining)
            yield from map(_tensor, [found] if isinstance(type_, TensorType) else found)


def _packed(types: Sequence[Type], changes: Iterator[tf.Tensor]) -> Iterator[Any]:
    for type_ in types:
        floats = [next(changes) for leaf in leaf_types(type_) if tf.as_dtype(leaf.dtype).is_floating]
        if floats:
            yield floats[0] if isinstance(type_, TensorType) else tuple(floats)
