"""Bytes that kernels and copies read and write, by the text of the compiled program.

A fusion reads its operands and writes its results. Of an operand that it only gathers or slices it reads what it takes;
of one into which it scatters or writes a slice, it reads and writes that part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SIZES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4}
SIZES |= {"s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16}
ARRAY = re.compile(r"\b(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,]*)\]")
INSTRUCTION = re.compile(
    r"^ *(?P<root>ROOT )?%(?P<name>\S+) = (?P<type>\(.*?\)|\S+) (?P<code>[\w-]+)\((?P<operands>[^)]*)\)(?P<rest>.*)$"
)
COMPUTATION = re.compile(r"^(?:ENTRY )?%(?P<name>\S+) \(.*\{$")
SLICED = ("gather", "dynamic-slice")
UPDATED = ("scatter", "dynamic-update-slice")
SAME = ("bitcast", "reshape", "get-tuple-element")


@dataclass(frozen=True)
class Instruction:
    """One instruction; its `operands` are names."""

    name: str
    type: str
    code: str
    operands: tuple[str, ...]
    rest: str
    is_root: bool

    @property
    def bytes(self) -> int:
        """Of its result."""
        return bytes_of(self.type)


def bytes_of(type_: str) -> int:
    """Of an array, or a tuple of some."""
    total = 0
    for found in ARRAY.finditer(re.sub(r"/\*.*?\*/|\{[^}]*\}", "", type_)):
        size = SIZES.get(found["dtype"], 0)
        for length in filter(None, found["shape"].split(",")):
            size *= int(length)
        total += size
    return total


class Traffic:
    """The instructions of a compiled program, and what they move."""

    def __init__(self, text: str):
        self._computations: dict[str, list[Instruction]] = {}
        self._found: dict[str, Instruction] = {}
        inside: list[Instruction] = []
        for line in text.splitlines():
            if head := COMPUTATION.match(line):
                inside = self._computations.setdefault(head["name"], [])
            elif found := INSTRUCTION.match(line):
                operands = tuple(re.findall(r"%([\w.-]+)", found["operands"]))
                made = Instruction(
                    found["name"], found["type"], found["code"], operands, found["rest"], bool(found["root"])
                )
                inside.append(made)
                self._found[made.name] = made

    def turns(self, name: str) -> int | None:
        """The number of turns of a loop, where the compiler knows it."""
        found = re.search(r'"known_trip_count":\{"n":"(\d+)"', self._rest(name))
        return int(found[1]) if found else None

    def scope(self, name: str) -> str:
        """The name that TensorFlow gave the operation that an instruction is made of."""
        found = re.search(r'op_name="([^"]*)"', self._rest(name))
        return found[1] if found else ""

    def changed(self, name: str) -> int:
        """The bytes of the arrays that a loop carries and its turns change: not of those that they only read."""
        loop = self._found.get(name)
        body = loop and re.search(r"body=%([\w.-]+)", loop.rest)
        if loop is None or not body or body[1] not in self._computations:
            return 0 if loop is None else loop.bytes
        inside = {each.name: each for each in self._computations[body[1]]}
        root = next(each for each in inside.values() if each.is_root)
        if root.code != "tuple":
            return loop.bytes
        after = enumerate(inside[name] for name in root.operands)
        return sum(each.bytes for place, each in after if not self._is_carried(each, place, inside))

    def _is_carried(self, found: Instruction, place: int, inside: Mapping[str, Instruction]) -> bool:
        """Return whether it is the loop's own array at this place, as the turn was given it."""
        is_part = found.code == "get-tuple-element" and re.search(rf"\bindex={place}\b", found.rest) is not None
        return is_part and inside[found.operands[0]].code == "parameter"

    def type_of(self, name: str) -> str:
        """The type of the result of an instruction."""
        return self._found[name].type if name in self._found else ""

    def copied(self, name: str) -> int:
        """The bytes of an array that is copied."""
        return self._found[name].bytes if name in self._found else 0

    def of(self, name: str) -> int:
        """The bytes that a kernel reads and writes."""
        found = self._found.get(name)
        if found is None:
            return 0
        called = re.search(r"calls=%([\w.-]+)", found.rest)
        if found.code != "fusion" or called is None:
            return found.bytes + self._sum(found.operands)
        inside = self._computations[called[1]]
        parameters = [each for each in inside if each.code == "parameter"]
        read, updated = 0, 0
        for each in parameters:
            part, in_place = self._part(each, inside)
            read += part
            updated += in_place
        return read + max(found.bytes - updated, 0)

    def _part(self, parameter: Instruction, inside: list[Instruction]) -> tuple[int, int]:
        """The bytes that are read of an operand, written ones included, and the bytes of what is written in place."""
        read, updated, seen = 0, 0, {parameter.name}
        for each in inside:
            places = [place for place, name in enumerate(each.operands) if name in seen]
            if not places:
                continue
            if each.code in SAME:
                seen.add(each.name)
            elif each.code in SLICED and places == [0]:
                read += each.bytes
            elif each.code in UPDATED and places == [0]:
                updates = each.operands[-1] if each.code == "scatter" else each.operands[1]
                read += 2 * next(one.bytes for one in inside if one.name == updates)
                updated += each.bytes
            else:
                return parameter.bytes, 0
        return min(read, 2 * parameter.bytes), updated

    def _sum(self, names: Iterable[str]) -> int:
        return sum(self._found[name].bytes for name in names if name in self._found)

    def _rest(self, name: str) -> str:
        return self._found[name].rest if name in self._found else ""
