"""Pieces in TensorFlow: running a user's code, and questions about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import Type
from pcbatch.runtime.backends.pieces import BatchSensitivity, Kernels, Signature
from pcbatch.runtime.backends.tensorflow import (
    custom_vectorised_ops,
    equivalents,
    error_locations,
    gradients,
    hlo,
    linearize,
    native,
    pieces,
    stores,
    structures,
    trace_cache,
    traces,
)
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.symbols import Symbols
from pcbatch.runtime.backends.tensorflow.weak import SizeError


class TensorFlowFacts:
    """See `pieces.Facts`."""

    def __init__(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]):
        self._given = piece, reads, shared

    @property
    def types(self) -> tuple[Type, ...]:
        return pieces.abstract_eval(*self._given)

    @property
    def sites(self) -> frozenset[int]:
        return pieces.checked_sites(*self._given)

    @property
    def cost(self) -> float:
        return pieces.cost(*self._given)

    @property
    def line_costs(self) -> tuple[float, ...]:
        return pieces.line_costs(*self._given)

    @property
    def together(self) -> BatchSensitivity:
        return pieces.together(*self._given)

    @property
    def kernels(self) -> Kernels:
        return native.kernels(*self._given)

    @property
    def called(self) -> list[str]:
        return custom_vectorised_ops.runs(traces.trace(*self._given).graph)

    @property
    def captured(self) -> list[Any]:
        return traces.captured(*self._given)

    @property
    def has_loop(self) -> bool:
        return pieces.has_loop(*self._given)


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

    def facts(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> TensorFlowFacts:
        return TensorFlowFacts(piece, reads, shared)

    store_element = staticmethod(stores.store_element)
    hlo = staticmethod(hlo.module)
    vectorize = staticmethod(pieces.vectorize)
    tangent = staticmethod(gradients.tangent)
    linearize = staticmethod(linearize.Linearized)

    tracing_once = staticmethod(traces.once)

    def trace_ahead(self, given: Iterable[tuple[Piece, Signature, str]]) -> None:
        traces.ahead((piece, signature.reads, signature.shared, label) for piece, signature, label in given)

    described = staticmethod(trace_cache.described)
    native_obstacles = staticmethod(pieces.native_obstacles)
