"""The program that falls out of an interpretation: blocks and ops, taken back where a part is tried again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.payload import Payload
from pcbatch.ir.types import Type
from pcbatch.reading.naming import Names
from pcbatch.reading.values import Lane


@dataclass(eq=False)
class OpenBlock:
    """A block that is being written; `end` is None as long as nobody knows where it goes."""

    label: str
    ops: list[ir.Op] = field(default_factory=list)
    end: ir.Terminator | None = None
    sync: bool = False


@dataclass(frozen=True)
class LoopNote:
    """A report on a loop whose turns make calls: its copies if it is written out, and `why` not."""

    span: Span | None
    why: str | None
    is_written_out: bool
    copies: int = 1


@dataclass(frozen=True)
class Mark:
    """A place in the writing of a function to which it can go back."""

    current: OpenBlock | None
    ops: int
    end: ir.Terminator | None
    sync: bool
    blocks: int
    label: int
    names: int
    notes: int


class Emitter:
    """Writes one function of the program. `current` is the block that ops go to, None where nothing gets."""

    def __init__(self, name: str, bound: dict[str, Any]):
        self.name, self.names = name, Names(bound)
        self.types: dict[str, Type] = {}
        self.layout: list[OpenBlock] = []
        self.current: OpenBlock | None = None
        self._labels = 0
        self.notes: list[LoopNote] = []
        self.written = 0
        """Number of blocks ever entered: straight code does not change it."""

    # -- blocks --------------------------------------------------------------------------------------------------------

    def block(self) -> OpenBlock:
        """A block that comes where it is entered."""
        self._labels += 1
        return OpenBlock(f"{self.name}.{self._labels}")

    def enter(self, block: OpenBlock | None) -> None:
        """Go on in `block`; in no block if nothing gets here."""
        self.current = block
        if block is not None and block not in self.layout:
            self.layout.append(block)
            self.written += 1

    def jump(self, block: OpenBlock, span: Span | None = None, *, turn: bool = False) -> None:
        """End the block by going to another."""
        self._end(ir.Jump(block.label, turn, span))

    def branch(self, condition: Lane, true: OpenBlock, false: OpenBlock, span: Span | None) -> None:
        """End the block by going to one of two."""
        self._end(ir.Branch(condition.name, true.label, false.label, span))

    def fault(self, message: str, arguments: tuple[str, ...], kind: ir.FaultKind, span: Span | None) -> None:
        """End the block by failing the lane."""
        self._end(ir.Fault(message, arguments, kind, span))

    def ret(self, span: Span | None) -> None:
        """End the block by leaving the function."""
        self._end(ir.Return(span))

    def _end(self, terminator: ir.Terminator) -> None:
        assert self.current is not None
        self.current.end = terminator
        self.current = None

    # -- ops -----------------------------------------------------------------------------------------------------------

    def fresh(self, type_: Type, hint: str = "", *, is_made: bool = False) -> str:
        """The name of a new variable of a type; see `Names.fresh`."""
        name = self.names.fresh(hint, is_made=is_made)
        self.types[name] = type_
        return name

    def append(self, op: ir.Op) -> None:
        """Write an op at the end of the block."""
        assert self.current is not None
        self.current.ops.append(op)

    def assign(self, name: str, inputs: tuple[str, ...], payload: Payload, span: Span | None) -> None:
        """Write `name = payload(inputs)`."""
        self.append(ir.Primitive((name,), inputs, payload, span))

    # -- going back ----------------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Here."""
        now = self.current
        ops, end, sync = (0, None, False) if now is None else (len(now.ops), now.end, now.sync)
        return Mark(now, ops, end, sync, len(self.layout), self._labels, self.names.mark(), len(self.notes))

    def back_to(self, mark: Mark) -> None:
        """Drop all that was written since `mark`."""
        del self.layout[mark.blocks :]
        self.current, self._labels = mark.current, mark.label
        if mark.current is not None:
            del mark.current.ops[mark.ops :]
            mark.current.end, mark.current.sync = mark.end, mark.sync
        self.names.back_to(mark.names)
        del self.notes[mark.notes :]

    def finished(self) -> tuple[ir.Block, ...]:
        """The blocks that have been written."""
        return tuple(ir.Block(each.label, tuple(each.ops), _known(each), each.sync) for each in self.layout)


def _known(block: OpenBlock) -> Any:
    assert block.end is not None, f"{block.label} goes nowhere"
    return block.end
