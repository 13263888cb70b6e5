"""Pieces with numbers of uint64, evaluated at once for one lane: in a graph.

Outside of graphs TensorFlow makes another uint64 of a negative int of Python's, or raises, where in a graph it wraps.
Such ints are constants of a piece, and what it reads from around it: of literals alone it is seen in the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.pieces import Signature
from pcbatch.runtime.backends.tensorflow import pieces, structures
from pcbatch.runtime.backends.tensorflow.structures import NotATensorError

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
    signature = Signature(*types, pieces.abstract_eval(piece, *types))
    given = [
        [structures.leaf_tensors(*each) for each in zip(*pair, strict=True)]
        for pair in zip((reads, shared), types, strict=True)
    ]

    def run() -> Any:
        rows, site = pieces.run_one(piece, signature, *given)
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
