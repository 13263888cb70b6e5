"""Pieces in TensorFlow: running a user's code, and questions about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from pcbatch.errors import Span
from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type
from pcbatch.runtime.backends.pieces import BatchSensitivity, Hlo, Kernels, Leaves, Linear, Note, Signature, Wanted
from pcbatch.runtime.backends.tensorflow import (
    custom_vectorised_ops,
    equivalents,
    error_locations,
    gradients,
    hlo,
    linearize,
    native,
    pieces,
    scattering,
    structures,
    trace_cache,
    traces,
)
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.symbols import Symbols
from pcbatch.runtime.backends.tensorflow.weak import SizeError


class TensorFlowPieces:
    """See `pieces.Pieces`."""

    def equivalent(self, function: Any) -> str | None:
        return equivalents.equivalent(function)

    def symbols(self, tapes: bool) -> Symbols:
        return Symbols(tapes)

    def failure(self, error: Exception, handed: bool = False) -> tuple[str, str, str]:
        return error_locations.failure(error, handed)

    def is_size(self, error: Exception) -> bool:
        return isinstance(error, SizeError | structures.ShapeError)

    def evaluate(self, piece: Piece, reads: Sequence[Any], shared: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        if pieces.has_uint64(piece, reads, shared):
            return pieces.evaluate(piece, reads, shared)
        types = [structures.type_of(value) for value in shared]
        operands = traces.with_kept(piece, [values.flatten(*each) for each in zip(types, shared, strict=True)])
        shared = [values.pack(*each) for each in zip(types, operands, strict=True)]
        with recording() as recorder:
            outputs = piece.compiled(*reads, *shared)
        return outputs, int(recorder.site())

    def store_element(self, array: Any, indices: Any, value: Any) -> tf.Tensor:
        return scattering.store_element(array, indices, value)

    def abstract_eval(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[Type, ...]:
        return pieces.abstract_eval(piece, reads, shared)

    def hlo(self, pieces: Sequence[tuple[Piece, Signature]], linear: Sequence[Linear | None] = ()) -> Hlo | None:
        return hlo.module(pieces, linear)

    def checked_sites(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> frozenset[int]:
        return pieces.checked_sites(piece, reads, shared)

    def cost(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> float:
        return pieces.cost(piece, reads, shared)

    def line_costs(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> tuple[float, ...]:
        return pieces.line_costs(piece, reads, shared)

    def together(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> BatchSensitivity:
        return pieces.together(piece, reads, shared)

    def kernels(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> Kernels:
        return native.kernels(piece, reads, shared)

    def vectorize(
        self,
        piece: Piece,
        signature: Signature,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        lanes: Any,
        taking_part: tf.Tensor | None = None,
        note: Note | None = None,
    ) -> tuple[list[list[tf.Tensor]], tf.Tensor | None]:
        return pieces.vectorize(piece, signature, reads, shared, lanes, taking_part, note)

    def captured(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> list[Any]:
        return traces.captured(piece, reads, shared)

    def tangent(self, piece: Piece, signature: Signature) -> Callable[..., tuple[Any, ...]]:
        return gradients.tangent(piece, signature)

    def linearize(self, piece: Piece, signature: Signature, wanted: Wanted) -> Linear:
        return linearize.Linearized(piece, signature, wanted)

    def has_loop(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> bool:
        return pieces.has_loop(piece, reads, shared)

    def called(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> list[str]:
        return custom_vectorised_ops.runs(traces.trace(piece, reads, shared).graph)

    def tracing_once(self, known: dict[Any, Any] | None = None, jit: bool = False) -> AbstractContextManager[None]:
        return traces.once(known, jit)

    def trace_ahead(self, given: Iterable[tuple[Piece, Signature, str]]) -> None:
        traces.ahead((piece, signature.reads, signature.shared, label) for piece, signature, label in given)

    def described(self, piece: Piece, signature: Signature) -> str | None:
        return trace_cache.described(piece, signature)

    def native_obstacles(self, given: Sequence[tuple[Piece, Signature]]) -> list[tuple[tuple[str, Span | None], ...]]:
        return pieces.native_obstacles(given)
