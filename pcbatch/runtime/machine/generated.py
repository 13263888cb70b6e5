"""The names that generated source imports as `_pcb`: the table's classes, and two helpers that keep its text short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pcbatch.errors import Span
from pcbatch.ir.expression_parser import parse_type
from pcbatch.ir.machine import (
    Block,
    Branch,
    Deferred,
    Fault,
    FaultSite,
    Fork,
    ForkedCall,
    Jump,
    LaneStatus,
    Piece,
    Program,
    Push,
    PushJump,
    Return,
    Store,
)
from pcbatch.ir.types import TensorType, Type
from pcbatch.ir.values import field_names

__all__ = [
    "Block",
    "Branch",
    "Deferred",
    "Fault",
    "FaultSite",
    "Fork",
    "ForkedCall",
    "Jump",
    "LaneStatus",
    "Piece",
    "Program",
    "Push",
    "PushJump",
    "Return",
    "Store",
    "at",
    "types",
]


def at(file: str) -> Callable[[int, int, int, int], Span]:
    """Spans in `file`, given by line, column, end line and end column."""
    return partial(Span, file)


def types(*records: type, **texts: str) -> dict[str, Type]:
    """Types by name, each written as the IR prints it: `types(n="int32[]", xs="float32[3]")`.

    `records` are the classes of the records in them.
    """
    known = {(record.__name__, field_names(record)): record for record in records}

    def constructed(type_: Type) -> Type:
        if isinstance(type_, TensorType):
            return type_
        items = tuple(constructed(item) for item in type_.items)
        return replace(
            type_, items=items, constructor=known.get((type_.kind, type_.keys), known.get((type_.kind, None)))
        )

    return {name: constructed(parse_type(text)) for name, text in texts.items()}
