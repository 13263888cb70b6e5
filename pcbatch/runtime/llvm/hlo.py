"""HLO: XLA's operations as text, read into data.

    module      ::= computation+                               one of them is the entry
    computation ::= name, instruction+                         in topological order, one of them is the root
    instruction ::= name = shape opcode(operand*), attribute*
    shape       ::= dtype[size*] | (shape*)

XLA prints what a traced function is made of before it optimises anything: one instruction a line, with typed operands,
called computations apart. The operations themselves are documented at https://openxla.org/xla/operation_semantics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


class UnsupportedError(Exception):
    """HLO that no native code is made of, and why."""


@dataclass(frozen=True)
class ArrayShape:
    """An array of a dtype, by XLA's name for it (`"f32"`). How XLA would lay it out is of no account here."""

    dtype: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class TupleShape:
    """A tuple of values."""

    items: tuple[Shape, ...]


Shape = ArrayShape | TupleShape


@dataclass(frozen=True)
class Instruction:
    """An operation; `literal` is the text between its parentheses where that is a number or a constant."""

    name: str
    shape: Shape
    opcode: str
    operands: tuple[str, ...]
    literal: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def array(self) -> ArrayShape:
        """The shape of its result, which is an array."""
        if not isinstance(self.shape, ArrayShape):
            raise UnsupportedError(f"{self.opcode} of a tuple")
        return self.shape

    def numbers(self, attribute: str) -> tuple[int, ...]:
        """The numbers of an attribute such as `dimensions={0,1}`; none where it is not there."""
        return tuple(map(int, re.findall(r"-?\d+", self.attributes.get(attribute, ""))))

    def computation(self, attribute: str = "to_apply") -> str:
        """The name of the computation that an attribute refers to."""
        return self.attributes[attribute].lstrip("%")


@dataclass(frozen=True)
class Computation:
    """Instructions in topological order, by name."""

    name: str
    instructions: Mapping[str, Instruction]
    root: Instruction

    @cached_property
    def parameters(self) -> tuple[Instruction, ...]:
        """The instructions that stand for its arguments, in the order of these."""
        found = [each for each in self.instructions.values() if each.opcode == "parameter"]
        return tuple(sorted(found, key=lambda each: int(each.literal)))

    def reached(self, roots: Sequence[str]) -> list[Instruction]:
        """The instructions that some results depend on, in topological order."""
        found: set[str] = set()
        waiting = [*roots]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.instructions[name].operands
        return [each for name, each in self.instructions.items() if name in found]


@dataclass(frozen=True)
class Module:
    """Computations by name."""

    computations: Mapping[str, Computation]
    entry: Computation

    def instructions(self) -> Iterator[Instruction]:
        """The instructions of all computations."""
        for computation in self.computations.values():
            yield from computation.instructions.values()


EMPTY = Module({}, Computation("empty", {}, Instruction("none", TupleShape(()), "tuple", ())))
"""A module without operations."""


def parse(text: str) -> Module:
    """Read a module as XLA prints it; `UnsupportedError` for contents that our modules do not have."""
    computations: dict[str, Computation] = {}
    entry: Computation | None = None
    lines = iter(text.splitlines())
    for line in lines:
        if line.endswith("{") and line.startswith(("%", "ENTRY ")):
            name = line.removeprefix("ENTRY ").split(" ", 1)[0].lstrip("%")
            computations[name] = _computation(name, lines)
            if line.startswith("ENTRY "):
                entry = computations[name]
    if entry is None:
        raise ValueError("the text of a module has no entry")
    return Module(computations, entry)


def _computation(name: str, lines: Iterator[str]) -> Computation:
    found: dict[str, Instruction] = {}
    root: Instruction | None = None
    for line in lines:
        if line.startswith("}"):
            break
        instruction = _instruction(line)
        found[instruction.name] = instruction
        if line.startswith("  ROOT "):
            root = instruction
    if root is None:
        raise ValueError(f"the computation {name} has no root")
    return Computation(name, found, root)


_LINE = re.compile(r"\s*(?:ROOT )?%([^\s=]+) = (.*)")
_COMMENT = re.compile(r"/\*.*?\*/")
_OPCODE = re.compile(r" ?([a-z][a-z0-9-]*)\(")
_NAME = re.compile(r"%([^\s,]+)$")
_LITERALS = ("constant", "parameter")


def _instruction(line: str) -> Instruction:
    if "/*" in line:
        line = _COMMENT.sub("", line)
    line = line.split(", metadata={", 1)[0]
    matched = _LINE.match(line)
    if matched is None:
        raise ValueError(f"not an instruction of HLO: {line}")
    name, rest = matched.groups()
    shape, place = _shape(rest, 0)
    opcode = _OPCODE.match(rest, place)
    if opcode is None:
        raise ValueError(f"an instruction of HLO without an opcode: {line}")
    end = _closing(rest, opcode.end() - 1)
    inside = rest[opcode.end() : end]
    attributes = dict(_attribute(each) for each in _split(rest[end + 1 :]) if each)
    if opcode[1] in _LITERALS:
        return Instruction(name, shape, opcode[1], (), inside, attributes)
    operands = tuple(_operand(each) for each in _split(inside) if each)
    return Instruction(name, shape, opcode[1], operands, "", attributes)


def _operand(text: str) -> str:
    found = _NAME.search(text)
    if found is None:
        raise ValueError(f"not an operand of HLO: {text}")
    return found[1]


def _attribute(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key, value


_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{[^}]*\})?")


def _shape(text: str, place: int) -> tuple[Shape, int]:
    """The shape that begins at a place of a text, and the place behind it."""
    if text[place] == "(":
        items: list[Shape] = []
        place += 1
        while text[place] != ")":
            if text[place] in ", ":
                place += 1
                continue
            item, place = _shape(text, place)
            items.append(item)
        return TupleShape(tuple(items)), place + 1
    matched = _ARRAY.match(text, place)
    if matched is None:
        raise UnsupportedError(f"values of the type {text[place : place + 20]}")
    sizes = matched[2]
    if "<" in sizes:
        raise UnsupportedError("arrays of sizes that are not known")
    shape = ArrayShape(matched[1], tuple(int(size) for size in sizes.split(",") if size))
    return shape, matched.end()


_OPENING, _CLOSING = "({[", ")}]"


def _closing(text: str, place: int) -> int:
    """The place of the parenthesis that closes the one at `place`."""
    depth = 0
    for at in range(place, len(text)):
        depth += (text[at] in _OPENING) - (text[at] in _CLOSING)
        if depth == 0:
            return at
    raise ValueError(f"an instruction of HLO that does not end: {text}")


def _split(text: str) -> Iterator[str]:
    """The parts of a list, separated by commas that are in no parentheses or quotes."""
    depth, start, quoted = 0, 0, False
    for at, letter in enumerate(text):
        if letter == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        if quoted:
            continue
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    yield text[start:].strip()


def constant(instruction: Instruction) -> list[str]:
    """The elements of a constant in row-major order, as written; one that is repeated is written out."""
    found: list[str] = re.findall(r"\([^)]*\)|[^\s{},]+", instruction.literal)
    if "..." in found:
        raise UnsupportedError("a constant that is not printed whole")
    return found
