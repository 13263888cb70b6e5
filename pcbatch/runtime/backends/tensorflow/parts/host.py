"""A user's values in TensorFlow: how they come in and go out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.ir.types import TensorType, Type
from pcbatch.runtime.backends.tensorflow import arguments, gradients, private, ragged, structures, trace_type

_TENSOR_NOW, _spec = private.TENSOR_NOW, private.spec


class TensorFlowHost:
    """See `host.Host`."""

    def spelling(self, operation: str) -> str:
        return structures.spelling(operation)

    def is_array(self, value: Any) -> bool:
        return isinstance(value, (tf.Tensor, tf.Variable, np.ndarray, np.generic)) or structures.is_of_keras(value)

    def is_variable(self, value: Any) -> bool:
        return isinstance(value, tf.Variable) or isinstance(getattr(value, "value", None), tf.Variable)  # Keras's own

    def held_by(self, value: Any) -> Any:
        return value.value if structures.is_of_keras(value) else value

    def takes_gradients(self, value: Any) -> bool:
        return gradients.takes_gradients(value)

    def type_of(self, value: Any) -> Type:
        return structures.type_of(value)

    def example_type(self, value: Any) -> Type:
        return arguments.example_type(value)

    def padded(self, value: Any, axes: Any) -> Any:
        return ragged.padded(value, axes)

    def as_arrays(self, value: Any, example: bool = False) -> Any:
        return arguments.as_arrays(value, example)

    def structure_of(self, value: Any) -> Type:
        return arguments.structure_of(value)

    def spec_of(self, value: Any) -> Hashable | None:
        if type(value) is _TENSOR_NOW or (isinstance(value, tf.Tensor) and not tf.is_symbolic_tensor(value)):
            return _spec(value)
        return None

    def specs_of(self, values: Sequence[Any]) -> tuple[Hashable, ...] | None:
        return private.specs(values)

    def is_steady(self, value: Any) -> bool:
        return self.spec_of(value) is not None

    def spread(self, array: Any, type_: TensorType, lanes: Any) -> tf.Tensor:
        rows = tf.cast(array, type_.dtype) if tf.is_tensor(array) else tf.convert_to_tensor(array, type_.dtype)
        return tf.broadcast_to(rows, [lanes, *type_.shape])

    def mapped(self, function: Callable[[Any], Any], value: Any) -> Any:
        return arguments.mapped(function, value)

    def as_argument(self, value: Any) -> Any:
        return trace_type.IdentityTraceType(value)

    def as_python(self, error: Exception) -> Exception:
        return arguments.as_python(error)

    def as_type(self, value: Any, type_: Type) -> Any:
        return arguments.as_type(value, type_)

    def wrap(self, value: Any, type_: Type) -> Any:
        return structures.wrap(value, type_)
