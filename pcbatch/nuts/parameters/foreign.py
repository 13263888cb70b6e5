"""Bijectors of other libraries: objects with `forward`, `inverse` and `forward_log_det_jacobian`, such as TFP's."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.nuts.parameters.bijectors import Shape

METHODS = ("forward", "inverse", "forward_log_det_jacobian")


def is_foreign(bijector: Any) -> bool:
    """Tell whether an object, not a class, has the methods of a bijector."""
    return not isinstance(bijector, type) and all(callable(getattr(bijector, name, None)) for name in METHODS)


class Foreign:
    """A bijector of another library, for parameters of one shape; equal to another one of the same object."""

    def __init__(self, bijector: Any, shape: Shape, dtype: tf.DType):
        """ValueError, or what the object itself raises, where it is none for parameters of this shape and dtype."""
        self.bijector = bijector
        self.shape, self.dtype = shape, dtype
        self.free = _shape_of(bijector.inverse, shape, dtype)
        back = _shape_of(bijector.forward, self.free, dtype)
        if back != shape:
            raise ValueError(f"gives arrays of shape {list(back)} where the parameter has {list(shape)}")
        rank = len(self.free)
        jacobian = _shape_of(functools.partial(_log_jacobian, bijector, rank), self.free, dtype)
        if jacobian:
            raise ValueError(f"gives log-Jacobians of shape {list(jacobian)}")

    def free_shape(self, shape: Shape) -> Shape:
        return self.free

    def forward(self, y: Any) -> Any:
        leading = y.shape[: y.shape.rank - len(self.free)]
        if not leading.rank:
            return self.bijector.forward(y)
        rows = tf.vectorized_map(self.bijector.forward, tf.reshape(y, [-1, *self.free]))
        return tf.reshape(rows, [*leading, *self.shape])

    def log_jacobian(self, y: Any) -> Any:
        return _log_jacobian(self.bijector, len(self.free), y)

    def values(self, y: np.ndarray) -> np.ndarray:
        """Compute `forward` of one example after another: in a batch the last bits may depend on the place."""
        return _of_rows(self, "forward", y, self.free, self.shape)

    def inverse(self, x: np.ndarray) -> np.ndarray:
        return _of_rows(self, "inverse", x, self.shape, self.free)

    def __eq__(self, other: object) -> bool:
        mine = (self.shape, self.dtype)
        return isinstance(other, Foreign) and self.bijector is other.bijector and mine == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((id(self.bijector), self.shape, self.dtype))

    def __repr__(self) -> str:
        return repr(self.bijector)


def _log_jacobian(bijector: Any, rank: int, y: Any) -> Any:
    """The logarithm of the Jacobian's determinant at one example of so many axes, a scalar."""
    method = bijector.forward_log_det_jacobian
    if _takes_event_ndims(method):
        return tf.cast(method(y, event_ndims=rank), y.dtype)
    return tf.reduce_sum(tf.cast(method(y), y.dtype))


def _takes_event_ndims(method: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False
    return "event_ndims" in parameters


def _shape_of(function: Callable[..., Any], shape: Shape, dtype: tf.DType) -> Shape:
    """The shape of what a function makes of an array of this one."""
    traced = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec(shape, dtype))
    found = traced.structured_outputs
    if not isinstance(found, tf.Tensor) or found.shape.rank is None or not found.shape.is_fully_defined():
        raise ValueError(f"gives {found!r:.60}, and no array of a fixed shape")
    if found.dtype != dtype:
        raise ValueError(f"gives numbers of {found.dtype.name}, not of {dtype.name}")
    return tuple(found.shape)


@functools.lru_cache(maxsize=64)
def _mapped(foreign: Foreign, name: str) -> Any:
    """A method of the object for rows `[n, ..]`, computed one by one."""
    method = getattr(foreign.bijector, name)
    source = foreign.free if name == "forward" else foreign.shape
    spec = tf.TensorSpec([None, *source], foreign.dtype)
    return tf.function(lambda rows: tf.map_fn(method, rows), input_signature=[spec], autograph=False)


def _of_rows(foreign: Foreign, name: str, array: np.ndarray, source: Shape, target: Shape) -> np.ndarray:
    """A method of the object for each example in `[.., *source]`."""
    leading = array.shape[: array.ndim - len(source)]
    dtype = foreign.dtype.as_numpy_dtype
    rows = np.asarray(array, dtype).reshape(-1, *source)
    found = _mapped(foreign, name)(tf.constant(rows)).numpy()
    return np.asarray(found).reshape(*leading, *target)
