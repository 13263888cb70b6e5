"""Pieces in TensorFlow: running a user's code, and questions about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type
from pcbatch.runtime.backends.pieces import Signature
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

    equivalent = staticmethod(equivalents.equivalent)

    def symbols(self, tapes: bool) -> Symbols:
        return Symbols(tapes)

    failure = staticmethod(error_locations.failure)

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

    store_element = staticmethod(scattering.store_element)
    abstract_eval = staticmethod(pieces.abstract_eval)
    hlo = staticmethod(hlo.module)
    checked_sites = staticmethod(pieces.checked_sites)
    cost = staticmethod(pieces.cost)
    line_costs = staticmethod(pieces.line_costs)
    together = staticmethod(pieces.together)
    kernels = staticmethod(native.kernels)
    vectorize = staticmethod(pieces.vectorize)
    captured = staticmethod(traces.captured)
    tangent = staticmethod(gradients.tangent)
    linearize = staticmethod(linearize.Linearized)
    has_loop = staticmethod(pieces.has_loop)

    def called(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> list[str]:
        return custom_vectorised_ops.runs(traces.trace(piece, reads, shared).graph)

    tracing_once = staticmethod(traces.once)

    def trace_ahead(self, given: Iterable[tuple[Piece, Signature, str]]) -> None:
        traces.ahead((piece, signature.reads, signature.shared, label) for piece, signature, label in given)

    described = staticmethod(trace_cache.described)
    native_obstacles = staticmethod(pieces.native_obstacles)
