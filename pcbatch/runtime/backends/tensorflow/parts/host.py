"""A user's values in TensorFlow: how they come in and go out."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.types import TensorType, Type
from pcbatch.runtime.backends.tensorflow import arguments, gradients, private, ragged, structures

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
        return arguments.example_type(value) if batch else structures.type_of(value)

    padded = staticmethod(ragged.padded)
    as_arrays = staticmethod(arguments.as_arrays)
    structure_of = staticmethod(arguments.structure_of)

    def spec_of(self, value: Any) -> Hashable | None:
        if type(value) is _TENSOR_NOW or (isinstance(value, tf.Tensor) and not tf.is_symbolic_tensor(value)):
            return _spec(value)
        return None

    specs_of = staticmethod(private.specs)

    def spread(self, array: Any, type_: TensorType, lanes: Any) -> tf.Tensor:
        rows = tf.cast(array, type_.dtype) if tf.is_tensor(array) else tf.convert_to_tensor(array, type_.dtype)
        return tf.broadcast_to(rows, [lanes, *type_.shape])

    mapped = staticmethod(arguments.mapped)

    def as_argument(self, value: Any) -> Any:
        return IdentityTraceType(value)

    as_python = staticmethod(arguments.as_python)
    as_type = staticmethod(arguments.as_type)
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
