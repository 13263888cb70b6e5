"""Parameters in any fixed structure of arrays, laid out as one vector, which is what the sampler moves.

```
layout ::= Leaf(shape) | Node(kind, names, layouts)      kind: dict, tuple, list, a named tuple's or a dataclass
```
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch.errors import UsageError

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
