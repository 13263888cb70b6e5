"""The program that falls out of an interpretation: blocks and ops, taken back where a part is tried again."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir import program as ir
from pcbatch.ir.payload import Pattern, Payload
from pcbatch.ir.types import StructType, Type
from pcbatch.lowering.codegen.environment import BUILTINS
from pcbatch.reading.values import Lane, Value, same_host

RESERVED = frozenset({"_ops", "_pcb", "_at", "PROGRAM", "complex", "slice", *BUILTINS})
"""Names with a fixed meaning in code: no variable and no value of the user's has one."""


class Names:
    """The names of variables of one function, and those by which the program's code knows values of Python's.

    `bound` has the values of Python's, by the name that code reads them by: all functions of a program have the same.
    """

    def __init__(self, bound: dict[str, Any]) -> None:
        self._hints: dict[str, str] = {}
        """The names that have been given out, each with what it was made of: nothing for a temporary."""
        self._numbers: dict[str, int] = {}
        self._given: list[tuple[str, int]] = []
        self.made: set[str] = set()
        """The names that are no user's."""
        self.bound = bound

    def fresh(self, hint: str = "", *, is_made: bool = False) -> str:
        """A name that nothing has: `hint` if it may be; without one, or where it `is_made`, it is no user's.

        Nor is it for the path to a part of an object, `todo.length`.
        """
        is_made, hint = is_made or "." in hint, hint.replace(".", "_")
        hint = hint if hint.isidentifier() else ""
        before = number = self._numbers.get(hint, 0)
        while not self._is_free(name := _numbered(hint, number)):
            number += 1
        self._numbers[hint] = number + 1
        self._hints[name] = hint
        self._given.append((name, before))
        if is_made or not hint:
            self.made.add(name)
        return name

    def hint(self, name: str) -> str:
        """Return what a name was made of: nothing for a temporary."""
        return self._hints.get(name, name)

    def _is_free(self, name: str) -> bool:
        return not (name in self._hints or name in self.bound or name in RESERVED or keyword.iskeyword(name))

    def bind(self, hint: str, value: Any) -> str:
        """The name by which code knows `value`."""
        name, number = hint, 0
        while (
            (name in self.bound and not same_host(self.bound[name], value))
            or name in self._hints
            or (name in RESERVED and getattr(builtins, name, None) is not value)
        ):
            number += 1
            name = f"{hint}_{number}"
        self.bound[name] = value
        return name

    def mark(self) -> int:
        """Return the number of names given out."""
        return len(self._given)

    def back_to(self, mark: int) -> None:
        """Take back the names that were given out since `mark`."""
        for name, before in reversed(self._given[mark:]):
            self._numbers[self._hints.pop(name)] = before
            self.made.discard(name)
        del self._given[mark:]


def hint_of(name: str) -> str:
    """The name that a user knows a variable by: those that the reader has for itself have a blank in theirs."""
    return name.partition(" ")[0]


def hint_of_text(text: str) -> str:
    """A name for what a user writes as this text."""
    hint = "_".join("".join(c if c.isalnum() or c == "_" else " " for c in text).split()) or "operand"
    return hint if hint.isidentifier() else f"_{hint}"


def _numbered(hint: str, number: int) -> str:
    """The name number `number` of those that are made of a hint."""
    if not hint:
        return f"t{number}"
    return f"{hint}_{number}" if number else hint


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


@dataclass(frozen=True, eq=False)
class Template:
    """The result of an operation: the types of its arrays inside of tuples, lists and dicts, and known values."""

    kind: str
    type: Type | None = None
    items: tuple[Template, ...] = ()
    keys: tuple[Any, ...] = ()
    cls: Any = None
    value: Any = None
    same: Value | None = None
    """The value that was handed in and is given back."""

    def has_parts(self) -> bool:
        """Tell whether there is anything in it that no variable can hold."""
        return self.kind == "part" or any(item.has_parts() for item in self.items)

    def leaves(self) -> Iterator[Type]:
        """The types of the arrays in it, in order."""
        if self.type is not None:
            yield self.type
        for item in self.items:
            yield from item.leaves()


def is_taken_apart(template: Template) -> bool:
    """Tell whether an assignment may take apart what is given: an array, or tuples and lists of nothing but arrays."""
    if template.type is not None:
        return True
    return template.kind in ("tuple", "list") and bool(template.items) and all(map(is_taken_apart, template.items))


def pattern_of(template: Template) -> Pattern | None:
    """The targets of such an assignment."""
    return None if template.type is not None else tuple(map(pattern_of, template.items))


def struct_of(template: Template) -> Type | None:
    """The type of a structure; None where it holds anything but arrays."""
    if template.type is not None:
        return template.type
    if template.kind == "host":
        return None
    items = [struct_of(each) for each in template.items]
    if None in items:
        return None
    kind = template.kind if template.cls is None else template.cls.__name__
    is_named = template.kind == "tuple" and template.cls is not None
    keys = template.cls._fields if is_named else template.keys
    return StructType(kind, tuple(items), tuple(keys), template.cls)  # type: ignore[arg-type]


def why_not_kept(value: Any) -> tuple[str, str, str]:
    """The code, the message and the help for an object of a library's that holds a lane's values."""
    if isinstance(value, BaseException):
        message = "an exception is made here of a lane's values, and is not raised here"
        return "PCB116", message, 'make it where it is raised: `raise ValueError(f"bad {x}")`'
    return (
        "PCB404",
        f"this gives an object of class {type(value).__name__} that holds a lane's values",
        "lanes keep numbers, arrays, and structures of them: let one function make the object and use it, decorated "
        "with `tf.function`",
    )
