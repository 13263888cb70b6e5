"""Types of lane values: tensors of one dtype and static shape, and fixed structures of them.

A type describes ONE example; the batch axis is the machine's business. `weak` marks Python numbers that have not met a
tensor yet (as in JAX's weak types); weak numbers are scalars of int32 or float64, as wide as Python's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class TensorType:
    """A tensor of one example: dtype name (`"int32"`), static shape, and whether it is a weak Python number."""

    dtype: str
    shape: tuple[int, ...] = ()
    weak: bool = False

    @property
    def returned(self) -> str:
        """The dtype that such a value has in the results of a batch: a weak float becomes float32 there at last."""
        return "float32" if self.weak and self.dtype == "float64" else self.dtype

    @property
    def bytes(self) -> int:
        """The size of such a value in bytes."""
        bits = "".join(filter(str.isdigit, self.dtype))  # bools have none, and take a byte
        return math.prod(self.shape) * (int(bits) // 8 if bits else 1)

    def __str__(self) -> str:
        """`int32[]`, `float32[3, 4]`, `weak int32[]`."""
        return f"{'weak ' if self.weak else ''}{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class StructType:
    """A fixed structure: `kind` is "tuple", "list", "dict", "None" or the name of a named tuple or dataclass.

    `keys` are the dict's keys or the fields' names (empty for tuples and lists); `constructor` rebuilds a value from
    its items and takes no part in comparisons, so that a type read back from text equals the one that was printed.
    """

    kind: str
    items: tuple[Type, ...]
    keys: tuple[Any, ...] = ()
    constructor: type | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """`(int32[], float32[3])`, `[int32[]]`, `{a: int32[]}`, `State(x=float32[3])`."""
        items = [str(item) for item in self.items]
        match self.kind:
            case "tuple":
                return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
            case "list":
                return f"[{', '.join(items)}]"
            case "dict":
                keys = [key if _is_plain(key) else repr(key) for key in self.keys]
                return "{" + ", ".join(f"{k}: {v}" for k, v in zip(keys, items, strict=True)) + "}"
            case "None":
                return "None"
            case name:
                return f"{name}({', '.join(f'{k}={v}' for k, v in zip(self.keys, items, strict=True))})"


def _is_plain(key: Any) -> bool:
    """Return whether a key of a dict is written without quotes."""
    return isinstance(key, str) and key.isidentifier() and key not in ("True", "False", "None")


Type = TensorType | StructType

NONE = StructType("None", ())
"""The type of None: a structure without leaves."""


def leaves(type_: Type) -> Iterator[TensorType]:
    """The tensor types inside `type_`, left to right."""
    match type_:
        case TensorType():
            yield type_
        case StructType(items=items):
            for item in items:
                yield from leaves(item)


def is_number(type_: Type) -> bool:
    """True for the type of one number."""
    return isinstance(type_, TensorType) and type_.shape == ()


def elements(type_: Type) -> int:
    """Return the number of elements in a value of the type."""
    return sum(math.prod(leaf.shape) for leaf in leaves(type_))


def with_leaves(type_: Type, new: Iterator[TensorType]) -> Type:
    """`type_` with the next of `new` in place of each of its tensor types."""
    match type_:
        case TensorType():
            return next(new)
        case StructType(items=items):
            return replace(type_, items=tuple(with_leaves(item, new) for item in items))
    raise TypeError(f"not a type: {type_!r}")


def returned(type_: Type) -> Type:
    """`type_` as it is in the results of a batch, where nothing is weak."""
    return with_leaves(type_, (TensorType(leaf.returned, leaf.shape) for leaf in leaves(type_)))


def structs(type_: Type) -> Iterator[StructType]:
    """The structures inside `type_`, itself among them."""
    if isinstance(type_, StructType):
        yield type_
        for item in type_.items:
            yield from structs(item)


def records(type_: Type) -> Iterator[type]:
    """The classes of the named tuples and dataclasses inside `type_`."""
    return (each.constructor for each in structs(type_) if each.constructor is not None)
