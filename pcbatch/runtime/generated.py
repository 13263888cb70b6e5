"""What generated source imports, as `_pcb`: the classes of the table and two helpers that keep its text short."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pcbatch.diagnostics import Span
from pcbatch.ir.type_parser import parse_type
from pcbatch.ir.types import Type
from pcbatch.runtime.status import LaneStatus
from pcbatch.runtime.table import (
    Block,
    Branch,
    Fault,
    FaultSite,
    Jump,
    Piece,
    Program,
    Push,
    PushJump,
    Return,
    Store,
)

__all__ = [
    "Block",
    "Branch",
    "Fault",
    "FaultSite",
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


def types(**texts: str) -> dict[str, Type]:
    """Types by name, each written as the IR prints it: `types(n="int32[]", xs="float32[3]")`."""
    return {name: parse_type(text) for name, text in texts.items()}
