"""Pieces in a Python loop over the lanes; see `backends.pieces`.

A piece sees NumPy's scalars and arrays, and plain Python numbers for weak ones, which take the dtype of what they meet
by NumPy's own rule. So its operations must be ones that these values know: operators, NumPy's functions, `ops`.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from pcbatch.errors import PieceRefusalError, Span
from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.slices import mesh
from pcbatch.ir.types import Type
from pcbatch.ir.types import leaves as leaf_types
from pcbatch.runtime.backends.pieces import (
    BatchSensitivity,
    Hlo,
    Kernels,
    Leaves,
    Linear,
    Note,
    Signature,
    Symbols,
    Wanted,
)
from tests.runtime.numpy_backend import structures
from tests.runtime.numpy_backend.recorder import recording


class NumPyPieces:
    """See `pieces.Pieces`."""

    ops_module = "tests.runtime.numpy_backend.ops"

    def equivalent(self, function: Any) -> str | None:
        return None  # Python's and NumPy's functions take NumPy's values

    def symbols(self, tapes: bool) -> Symbols:
        return NumPySymbols()

    def failure(self, error: Exception, handed: bool = False) -> tuple[str, str, str]:
        if isinstance(error, PieceRefusalError):
            return error.code, error.message, error.help
        return "PCB401", f"{type(error).__name__}: {error}", ""

    def is_size(self, error: Exception) -> bool:
        return False  # numbers have values here, ones

    # -- running it ----------------------------------------------------------------------------------------------------

    def vectorize(
        self,
        piece: Piece,
        signature: Signature,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        lanes: Any,
        taking_part: Any = None,
        note: Note | None = None,
    ) -> tuple[list[list[Any]], Any | None]:
        same = [*map(_packed, signature.shared, shared)]
        rows: list[list[Any]] = []
        site = np.zeros(lanes, np.int32)
        with np.errstate(all="ignore"):  # lanes that take no part compute with whatever they hold
            for lane in range(lanes):
                operands = [
                    _packed(type_, [leaf[lane] for leaf in leaves])
                    for type_, leaves in zip(signature.reads, reads, strict=True)
                ]
                outputs, site[lane] = self.evaluate(piece, operands, same)
                written = zip(outputs, signature.writes, strict=True)
                rows.append([leaf for output, type_ in written for leaf in structures.leaves(output, type_)])
        columns = iter(zip(*rows, strict=True)) if rows else itertools.repeat(())
        found = [
            [np.array(next(columns), leaf.dtype).reshape(lanes, *leaf.shape) for leaf in leaf_types(type_)]
            for type_ in signature.writes
        ]
        return found, site if piece.sites else None

    def tangent(self, piece: Piece, signature: Signature) -> Callable[..., tuple[Any, ...]]:
        raise NotImplementedError("nobody knows the derivative of a function of NumPy's")

    def linearize(self, piece: Piece, signature: Signature, wanted: Wanted) -> Linear:
        raise NotImplementedError("nobody knows the derivative of a function of NumPy's")

    def tracing_once(self, known: dict[Any, Any] | None = None, jit: bool = False) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def trace_ahead(self, given: Iterable[tuple[Piece, Signature, str]]) -> None:
        pass

    def described(self, piece: Piece, signature: Signature) -> str | None:
        return None

    def native_obstacles(
        self, pieces: Sequence[tuple[Piece, Signature, str]]
    ) -> list[tuple[tuple[str, Span | None], ...]]:
        return [() for _ in pieces]

    def hlo(self, pieces: Sequence[tuple[Piece, Signature]], linear: Sequence[Linear | None] = ()) -> Hlo | None:
        return None

    def facts(self, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]) -> NumPyFacts:
        return NumPyFacts(self, piece, reads, shared)

    def evaluate(self, piece: Piece, reads: Sequence[Any], shared: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        with recording() as recorder:
            outputs = piece.compiled(*reads, *shared)
        if not recorder.sites <= set(piece.sites):
            raise ValueError(f"a piece checks {recorder.sites}, but declares {piece.sites}")
        return outputs, recorder.first

    def store_element(self, array: Any, indices: Any, value: Any) -> Any:
        stored = np.array(array)
        stored[mesh(indices if isinstance(indices, tuple) else (indices,))] = value
        return stored


class NumPyFacts:
    """See `pieces.Facts`."""

    has_loop = False  # it would be one of Python's, which no one can see
    together = BatchSensitivity(rounds=False, shares=False)  # a row is computed alone

    def __init__(self, pieces: NumPyPieces, piece: Piece, reads: Sequence[Type], shared: Sequence[Type]):
        self._pieces, self._piece, self._reads, self._shared = pieces, piece, reads, shared
        self.captured: list[Any] = []  # nobody sees what Python reads
        self.called: list[str] = []

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of results for ones: types that depend on values are not found out."""
        reads, shared = (list(map(_ones, types)) for types in (self._reads, self._shared))
        outputs, _ = self._pieces.evaluate(self._piece, reads, shared)
        return tuple(map(structures.type_of, outputs))

    @property
    def sites(self) -> frozenset[int]:
        """All declared sites: only runs can tell which ones it checks on such types."""
        return frozenset(self._piece.sites)

    @property
    def cost(self) -> float:
        """The number of elements that it reads, times its lines: their contents are ignored."""
        types = (*self._reads, *self._shared)
        read = sum(math.prod(leaf.shape) for type_ in types for leaf in leaf_types(type_))
        return float(read * max(len(self._piece.spans), 1))

    @property
    def line_costs(self) -> tuple[float, ...]:
        """The same of every line."""
        return tuple(self.cost / len(self._piece.spans) for _ in self._piece.spans)

    @property
    def kernels(self) -> Kernels:
        return Kernels(self.cost, self.cost)


class NumPySymbols:
    """Symbols as arrays of ones: types that depend on values are not found out."""

    def symbol(self, type_: Type, *, own: bool = False) -> Any:
        return _ones(type_)

    def called(self, make: Callable[[], Any]) -> tuple[Any, bool]:
        with recording() as recorder:
            found = make()
        return found, bool(recorder.sites)

    def type_of(self, value: Any) -> Type | None:
        return structures.type_of(value) if isinstance(value, np.ndarray | np.generic | int | float) else None

    def why_part(self, value: Any) -> Exception | None:
        return None

    def is_written(self, value: Any) -> bool:
        return False

    def made_of(self, values: Sequence[Any], given: Sequence[Any]) -> Hashable:
        arrays = [np.asarray(each) for each in values]
        return tuple((each.dtype.str, each.shape, each.tobytes()) for each in arrays)

    def entered(self, manager: Any) -> AbstractContextManager[Any]:
        found: AbstractContextManager[Any] = manager
        return found


def _ones(type_: Type) -> Any:
    return _packed(type_, [np.ones(leaf.shape, leaf.dtype)[()] for leaf in leaf_types(type_)])


def _packed(type_: Type, leaves: Leaves) -> Any:
    """The value that a piece sees."""
    return structures.wrap(values.pack(type_, leaves), type_)
