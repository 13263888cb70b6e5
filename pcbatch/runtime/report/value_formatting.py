"""One lane's value as text and as JSON: structures of NumPy scalars and arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pcbatch.ir import records


def _leaf(value: Any) -> str:
    return str(np.asarray(value))


def written(value: Any, leaf: Callable[[Any], str] = _leaf) -> str:
    """The value as a person writes it: `3`, `0.1`, `[1 2]`, `(True, {'a': 2.5})`; numbers and arrays as `leaf` says."""

    def inner(item: Any) -> str:
        return written(item, leaf)

    match value:
        case tuple() if not hasattr(value, "_fields"):
            return f"({', '.join(map(inner, value))}{',' * (len(value) == 1)})"
        case list():
            return f"[{', '.join(map(inner, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{key!r}: {inner(item)}" for key, item in value.items()) + "}"
    fields = records.fields_of(value)
    if fields is None:
        return leaf(value)
    return f"{type(value).__name__}({', '.join(f'{name}={inner(item)}' for name, item in fields.items())})"


def listed(value: Any) -> Any:
    """Return the value for JSON: objects for named parts, lists, numbers, and text for numbers that JSON lacks."""
    match value:
        case list():
            return [listed(item) for item in value]
        case tuple() if not hasattr(value, "_fields"):
            return [listed(item) for item in value]
        case Mapping():
            return {str(key): listed(item) for key, item in value.items()}
    fields = records.fields_of(value)
    if fields is not None:
        return {name: listed(item) for name, item in fields.items()}
    array = np.asarray(value)
    return [listed(item) for item in array] if array.ndim else _number(array[()])


def _number(scalar: Any) -> Any:
    """A scalar in the digits of its own precision: float32 0.1 is 0.1."""
    if isinstance(scalar, (np.bool_, np.integer)):
        return scalar.item()
    try:
        number = float(str(scalar))
    except ValueError:  # complex numbers
        return str(scalar)
    return number if math.isfinite(number) else str(number)
