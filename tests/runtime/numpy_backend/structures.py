"""Values of one example as NumPy's scalars and arrays, weak numbers as Python's own; their types."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcbatch.ir import values
from pcbatch.ir.types import NONE, StructType, TensorType, Type, is_inexact
from pcbatch.ir.types import leaves as leaf_types


def type_of(value: Any) -> Type:
    """The type of a structure of arrays and Python numbers; TypeError for any other value."""
    match value:
        case np.ndarray() | np.generic() if value.dtype.kind in "biufc":
            return TensorType(value.dtype.name, value.shape)
        case bool():
            return TensorType("bool")
        case int():
            return TensorType("int32", weak=True)
        case float():
            return TensorType("float64", weak=True)
        case None:
            return NONE
        case dict():
            return StructType("dict", tuple(map(type_of, value.values())), tuple(value))
        case list():
            return StructType("list", tuple(map(type_of, value)))
        case tuple() if not hasattr(value, "_fields"):
            return StructType("tuple", tuple(map(type_of, value)))
    fields = values.fields_of(value)
    if fields is not None:
        return StructType(type(value).__name__, tuple(map(type_of, fields.values())), tuple(fields), type(value))
    raise TypeError(f"not an array but a {type(value).__name__}")


def leaves(value: Any, type_: Type) -> list[Any]:
    """The leaves of `value` as arrays of exactly the leaf types of `type_`; TypeError where one does not fit."""
    found = zip(values.flatten(type_, value), leaf_types(type_), strict=True)
    return [_leaf(leaf, leaf_type) for leaf, leaf_type in found]


def wrap(value: Any, type_: Type) -> Any:
    """`value`, arrays of exactly `type_`, its weak numbers as Python's."""
    found = zip(values.flatten(type_, value), leaf_types(type_), strict=True)
    return values.pack(type_, [_weak(leaf, leaf_type) if leaf_type.weak else leaf for leaf, leaf_type in found])


def _weak(value: Any, type_: TensorType) -> float:
    return float(value) if is_inexact(type_.dtype) else int(value)


def _leaf(value: Any, type_: TensorType) -> Any:
    if type(value) in (int, float):
        if type_.dtype == "bool" or (type(value) is float and not is_inexact(type_.dtype)):
            raise TypeError(f"the number {value} does not fit {type_}")
        array = np.asarray(value).astype(type_.dtype)
    else:
        array = np.asarray(value)
    if array.dtype != type_.dtype or array.shape != type_.shape:
        raise TypeError(f"{array.dtype.name}{list(array.shape)} is not {type_}")
    return array[()]
