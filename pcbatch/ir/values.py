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
        case StructType(kind=kind, items=items, keys=keys):
            match kind:
                case "None":
                    parts = []
                case "tuple" | "list":
                    parts = list(value)
                case "dict":
                    parts = [value[key] for key in keys]
                case _:  # a record; without its class, as read back from text, a plain tuple
                    parts = list(value) if isinstance(value, tuple) else [getattr(value, key) for key in keys]
            return [leaf for item, part in zip(items, parts, strict=True) for leaf in flatten(item, part)]
    raise TypeError(f"not a type: {type_!r}")


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
        case StructType(kind=kind, items=items, keys=keys, constructor=constructor):
            parts = [_pack(item, leaves) for item in items]
            match kind:
                case "None":
                    return None
                case "list":
                    return parts
                case "dict":
                    return dict(zip(keys, parts, strict=True))
                case "tuple":
                    return tuple(parts)
                case _:
                    return (
                        records.made(constructor, dict(zip(keys, parts, strict=True))) if constructor else tuple(parts)
                    )
    raise TypeError(f"not a type: {type_!r}")
