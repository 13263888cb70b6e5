"""Parameters in any fixed structure of arrays, laid out as one vector, which is what the sampler moves.

```
layout ::= Leaf(shape) | Node(kind, names, layouts)      kind: dict, tuple, list, a named tuple's or a dataclass
```
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError
from pcbatch.nuts.parameters.bijectors import Shape

# -- foreign -----------------------------------------------------------------------------------------------------------
# Bijectors of other libraries: objects with `forward`, `inverse` and `forward_log_det_jacobian`, such as TFP's.

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


# -- parameters --------------------------------------------------------------------------------------------------------

FLOATS = tuple(np.dtype(each.as_numpy_dtype) for each in (tf.float16, tf.bfloat16, tf.float32, tf.float64))


@dataclass(frozen=True)
class Leaf:
    """One array parameter."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of its elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Node:
    """A structure of parameters; `names` are keys, field names or positions."""

    kind: type[Any]
    names: tuple[str, ...]
    layouts: tuple[Layout, ...]

    @property
    def size(self) -> int:
        """Number of its elements."""
        return sum(layout.size for layout in self.layouts)


Layout = Leaf | Node


def layout_of(structure: Any) -> Layout:
    """The layout of one example's parameters.

    >>> layout_of({"scale": 1.0, "weights": np.zeros((2, 3))}).size
    7
    """
    inner = _children(structure)
    if inner is None:
        return Leaf(tuple(np.shape(structure)))
    return Node(type(structure), tuple(inner), tuple(map(layout_of, inner.values())))


def _children(structure: Any) -> dict[str, Any] | None:
    """The parts of a structure by key, field name or position; None for an array."""
    match structure:
        case dict():
            return structure
        case tuple() | list():
            names = getattr(structure, "_fields", None) or map(str, range(len(structure)))
            return dict(zip(names, structure, strict=True))
    if is_dataclass(structure) and not isinstance(structure, type):
        return {field.name: getattr(structure, field.name) for field in fields(structure)}
    return None


def leaves(layout: Layout, name: str = "") -> Iterator[tuple[str, Leaf]]:
    """The arrays and their names, in the order in which the vector has them; a bare array is called `x`.

    >>> [name for name, _ in leaves(layout_of({"a": 0.0, "b": {"c": 0.0, "d": (0.0, 0.0)}}))]
    ['a', 'b.c', 'b.d.0', 'b.d.1']
    """
    match layout:
        case Leaf():
            yield name or "x", layout
        case Node(names=names, layouts=layouts):
            for key, inner in zip(names, layouts, strict=True):
                yield from leaves(inner, f"{name}.{key}" if name else key)


def arrays_of(structure: Any) -> list[Any]:
    """The arrays of a structure, in the order of its layout."""
    inner = _children(structure)
    return [structure] if inner is None else [array for part in inner.values() for array in arrays_of(part)]


def dtype_of(structure: Any) -> tf.DType:
    """float64 if a leaf is a float64 array, else float32."""
    flat = [getattr(array, "dtype", tf.float32) for array in arrays_of(structure)]
    return tf.float64 if any(tf.as_dtype(dtype) == tf.float64 for dtype in flat) else tf.float32


def cast(structure: Any, dtype: str, name: str) -> Any:
    """The structure with all its arrays of floats in the `dtype` of the sampler; all else stays as it is.

    UsageError PCB551, for the argument of this `name`, where numbers are too large for it, and for text.

    >>> cast({"x": np.ones(2), "n": np.arange(2)}, "float32", "data")["x"].dtype
    dtype('float32')
    """
    inner = _children(structure)
    if inner is None:
        return _cast_array(structure, tf.as_dtype(dtype), name)
    parts = [cast(part, dtype, f"{name}[{key!r}]") for key, part in inner.items()]
    if isinstance(structure, (tuple, list)) and all(map(operator.is_, parts, inner.values())):
        return structure
    return made(type(structure), tuple(inner), parts)


def _cast_array(array: Any, dtype: tf.DType, name: str) -> Any:
    if isinstance(array, (str, bytes)):
        raise UsageError("PCB551", f"{name} is text, not numbers: let the density read it from around it")
    is_tensor = isinstance(array, (tf.Tensor, tf.Variable))
    found = array if is_tensor or isinstance(array, (bool, int)) else np.asarray(array)
    is_known = is_tensor or (isinstance(found, np.ndarray) and found.dtype in FLOATS)
    kind = tf.as_dtype(found.dtype) if is_known else None
    if kind is None or not kind.is_floating or kind == dtype:
        if is_tensor or kind is None:
            return array
        return found
    wider = "dtype=tf.float64" if dtype == tf.float32 else f"numbers that {dtype.name} has"
    with np.errstate(over="ignore"):
        made_ = tf.cast(found, dtype) if is_tensor else found.astype(dtype.as_numpy_dtype)
    if bool(np.any(np.isfinite(np.asarray(found, np.float64)) & ~np.isfinite(np.asarray(made_)))):
        raise UsageError("PCB551", f"{name} has numbers that are too large for {dtype.name}; give {wider}")
    return made_


def ravel(structure: Any, batch: int = 0) -> Any:
    """The structure's numbers as one array `[*leading axes, size]`; the first `batch` axes of every leaf are kept.

    >>> ravel({"a": 1.0, "b": np.array([2.0, 3.0])}).tolist()
    [1.0, 2.0, 3.0]
    """
    inner = _children(structure)
    if inner is None:
        array = np.asarray(structure)
        return array.reshape(*array.shape[:batch], -1)
    return np.concatenate([ravel(part, batch) for part in inner.values()], axis=-1)


def unravel(layout: Layout, vector: tf.Tensor) -> Any:
    """The structure whose numbers, laid out, are the tensor `vector` of shape `[size]`."""
    match layout:
        case Leaf(shape=shape):
            return tf.reshape(vector, shape)
        case Node(kind=kind, names=names, layouts=layouts):
            parts = [unravel(inner, part) for inner, part in zip(layouts, split(vector, layouts), strict=True)]
            return made(kind, names, parts)


def made(kind: type[Any], names: Sequence[str], parts: Sequence[Any]) -> Any:
    """The structure of this kind with these parts."""
    if issubclass(kind, dict):
        return dict(zip(names, parts, strict=True))
    return kind(*parts) if hasattr(kind, "_fields") or is_dataclass(kind) else kind(parts)


def by_name(layout: Layout, array: Any) -> dict[str, Any]:
    """Name to array for a NumPy array `[.., size]` of laid out parameters; each result is `[.., *shape]`."""
    named = list(leaves(layout))
    parts = split(array, [leaf for _, leaf in named])
    return {name: part.reshape(*array.shape[:-1], *leaf.shape) for (name, leaf), part in zip(named, parts, strict=True)}


def split(array: Any, layouts: Any) -> list[Any]:
    """`array` cut along its last axis into the parts of `layouts`."""
    ends = np.cumsum([layout.size for layout in layouts])
    return [array[..., end - layout.size : end] for layout, end in zip(layouts, ends, strict=True)]
