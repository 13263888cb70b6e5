"""The TensorFlow backend: the machine's array operations, compiled by XLA or run as a plain graph.

A user's values come in and go out here, and a user's code is run and asked about.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir import values
from pcbatch.ir.machine import Piece
from pcbatch.ir.types import TensorType, Type
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
    private,
    ragged,
    stores,
    structures,
    trace_cache,
    traces,
)
from pcbatch.runtime.backends.tensorflow.arrays import TensorFlowArrays
from pcbatch.runtime.backends.tensorflow.control import TensorFlowControl
from pcbatch.runtime.backends.tensorflow.recorder import recording
from pcbatch.runtime.backends.tensorflow.symbols import Symbols
from pcbatch.runtime.backends.tensorflow.weak import SizeError

Tensor = tf.Tensor
"""TensorFlow's type of arrays, for annotations; type checkers without stubs for TensorFlow take it for `Any`."""


# -- the user's values -------------------------------------------------------------------------------------------------


_TENSOR_NOW, _spec = private.TENSOR_NOW, private.spec


class TensorFlowHost:
    """See `Host`."""

    spelling = staticmethod(structures.spelling)

    def is_array(self, value: Any) -> bool:
        return isinstance(value, (tf.Tensor, tf.Variable, np.ndarray, np.generic)) or structures.is_of_keras(value)

    def is_variable(self, value: Any) -> bool:
        return isinstance(value, tf.Variable) or isinstance(getattr(value, "value", None), tf.Variable)  # Keras's own

    def held_by(self, value: Any) -> Any:
        return value.value if structures.is_of_keras(value) else value

    takes_gradients = staticmethod(gradients.takes_gradients)

    def type_of(self, value: Any, *, batch: bool = False) -> Type:
        return structures.example_type(value) if batch else structures.type_of(value)

    padded = staticmethod(ragged.padded)
    as_arrays = staticmethod(structures.as_arrays)
    structure_of = staticmethod(structures.structure_of)

    def spec_of(self, value: Any) -> Hashable | None:
        if type(value) is _TENSOR_NOW or (isinstance(value, tf.Tensor) and not tf.is_symbolic_tensor(value)):
            return _spec(value)
        return None

    specs_of = staticmethod(private.specs)

    def spread(self, array: Any, type_: TensorType, lanes: Any) -> tf.Tensor:
        rows = tf.cast(array, type_.dtype) if tf.is_tensor(array) else tf.convert_to_tensor(array, type_.dtype)
        return tf.broadcast_to(rows, [lanes, *type_.shape])

    mapped = staticmethod(structures.mapped)

    def as_argument(self, value: Any) -> Any:
        return IdentityTraceType(value)

    as_python = staticmethod(structures.as_python)
    as_type = staticmethod(structures.as_type)
    wrap = staticmethod(structures.wrap)


# Batched functions as arguments of a `tf.function`, or as defaults of these: their trace types.
#
# TensorFlow takes what has a `__wrapped__` for that: the body would be traced with the user's function of one example
# in place of the batched one.


class IdentityTraceType(tf.types.experimental.TraceType):  # type: ignore[misc]  # it has no types
    """The type of one object alone; it does not keep it alive."""

    def __init__(self, value: Any):
        self._reference = weakref.ref(value)
        self._hash = id(value)

    def is_subtype_of(self, other: tf.types.experimental.TraceType) -> bool:
        return bool(self == other)

    def most_specific_common_supertype(
        self, others: Sequence[tf.types.experimental.TraceType]
    ) -> IdentityTraceType | None:
        return self if all(self == other for other in others) else None

    def placeholder_value(self, placeholder_context: Any) -> Any:
        return self._reference()

    def cast(self, value: Any, cast_context: Any) -> Any:
        if value is not self._reference():
            raise ValueError(f"{value!r} is not {self!r}")
        return value

    def __eq__(self, other: object) -> bool:
        value = self._reference()
        return isinstance(other, IdentityTraceType) and value is not None and value is other.placeholder_value(None)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Itself({self._reference()!r})"


# -- pieces ------------------------------------------------------------------------------------------------------------


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


# -- backend -----------------------------------------------------------------------------------------------------------


class TensorFlowBackend(TensorFlowArrays, TensorFlowControl, TensorFlowPieces, TensorFlowHost):
    """See `protocol.Backend`."""

    name = "tensorflow"
    ops_module = "pcbatch.runtime.backends.tensorflow.ops"
