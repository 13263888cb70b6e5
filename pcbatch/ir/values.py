"""Structured values and their leaves: taking a value apart by its type and putting it together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pcbatch.ir import records
from pcbatch.ir.types import StructType, TensorType, Type


def flatten(type_: Type, value: Any) -> list[Any]:
    """The leaves of `value`, a structure of `type_`, left to right."""
    match type_:
        case TensorType():
            return [value]
        case StructType(items=items):
            pairs = zip(items, parts(type_, value), strict=True)
            return [leaf for item, part in pairs for leaf in flatten(item, part)]
    raise TypeError(f"not a type: {type_!r}")


def parts(type_: StructType, value: Any) -> list[Any]:
    """The parts of `value`, a structure of `type_`, in order."""
    match type_.kind:
        case "None":
            return []
        case "tuple" | "list":
            return list(value)
        case "dict":
            return [value[key] for key in type_.keys]
    # a record; without its class, as read back from text, a plain tuple
    return list(value) if isinstance(value, tuple) else [getattr(value, key) for key in type_.keys]


def pack(type_: Type, leaves: Sequence[Any]) -> Any:
    """The structure of `type_` that is made of `leaves`: the inverse of `flatten`."""
    remaining = iter(leaves)
    value = _pack(type_, remaining)
    if next(remaining, None) is not None:
        raise ValueError(f"too many leaves for {type_}")
    return value


def _pack(type_: Type, leaves: Iterator[Any]) -> Any:
    match type_:
        case TensorType():
            return next(leaves)
        case StructType(items=items):
            return joined(type_, [_pack(item, leaves) for item in items])
    raise TypeError(f"not a type: {type_!r}")


def joined(type_: StructType, parts: list[Any]) -> Any:
    """The structure of `type_` that has these parts."""
    match type_.kind:
        case "None":
            return None
        case "list":
            return parts
        case "dict":
            return dict(zip(type_.keys, parts, strict=True))
        case "tuple":
            return tuple(parts)
    constructor = type_.constructor
    return records.made(constructor, dict(zip(type_.keys, parts, strict=True))) if constructor else tuple(parts)
