"""Reads a program of the machine dialect back from its text: `parse_machine(print_machine(p)) == p`.

That holds for every program whose pieces are statements. Generated code and spans are not in the text. As in the other
dialects, what a statement reads follows from its code and from which names are variables
(`pcbatch.ir.analysis.machine_scope`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import cast

from pcbatch.ir.analysis.machine_scope import with_inputs
from pcbatch.ir.machine import Block, FaultSite, Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.text.lines import (
    NAME,
    NAMES,
    IRSyntaxError,
    indented,
    lines_of,
    split,
    take,
    without_comment,
)
from pcbatch.ir.text.machine_block_parser import number_of, numbers_of, parse_block
from pcbatch.ir.text.parser import parse_variable
from pcbatch.ir.text.type_parser import parse_type
from pcbatch.ir.types import StructType, Type

_FUNCTION = re.compile(r"function(?: (\S+))?")
_HEADER = re.compile(rf"program machine ([^\s()]+)\(({NAMES})?\)(?: -> ({NAMES}))?")


def parse_machine(text: str) -> Program:
    """The machine program that `text` denotes; IRSyntaxError where it denotes none."""
    lines = lines_of(text, 2)
    number, header = lines.pop(0) if lines else (1, "")
    if (match := _HEADER.fullmatch(header)) is None:
        raise IRSyntaxError(number, f"expected 'program machine name(parameters) -> results', not {header!r}")
    tables = _Tables()
    while indented(lines):
        _entry(tables, *take(lines))
    numbers = numbers_of(lines)
    blocks: list[Block] = []
    function = ""
    while lines:
        number, line = lines[0]
        if (found := _FUNCTION.fullmatch(line)) is not None:
            function = found[1] or ""
            lines.pop(0)
        else:
            blocks.append(parse_block(lines, numbers, function))
    program = Program(
        match[1],
        split(match[2]),
        split(match[3]),
        tables.types,
        tables.storage,
        tuple(blocks),
        tuple(tables.faults),
        tuple(tables.shared),
        {name: type_ for name, type_ in tables.shared.items() if type_ is not None},
        tables.pointers,
        tuple(number_of(at, label, numbers) for at, label in tables.order),
        tuple(tuple(number_of(at, label, numbers) for at, label in members) for members in tables.merged),
        tuple(number_of(at, label, numbers) for at, label in tables.native),
        tables.externs,
        tables.structure,
    )
    return with_inputs(program)


# -- tables ------------------------------------------------------------------------------------------------------------


@dataclass
class _Tables:
    """The contents of the lines above the blocks."""

    types: dict[str, Type] = field(default_factory=dict)
    storage: dict[str, str] = field(default_factory=dict)
    shared: dict[str, Type | None] = field(default_factory=dict)
    pointers: dict[str, str] = field(default_factory=dict)
    faults: list[FaultSite] = field(default_factory=list)
    order: list[tuple[int, str]] = field(default_factory=list)
    merged: list[list[tuple[int, str]]] = field(default_factory=list)
    native: list[tuple[int, str]] = field(default_factory=list)
    externs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    structure: StructType | None = None


_POINTER = re.compile(rf"pointer ({NAME}): ({NAMES})")
_SITE = re.compile(rf'site (\d+): ({"|".join(LaneStatus.__members__)}) (".*")(?: ({NAMES}))?')
_EXTERN = re.compile(rf"extern ([^\s:]+): ({NAMES})")
_STRUCTURE = re.compile(r"structure (.+)")
_ORDER = re.compile(r"order (\w+(?:, \w+)*)")
_MERGED = re.compile(r"merged (\w+(?:, \w+)*)")
_NATIVE = re.compile(r"native (\w+(?:, \w+)*)")


def _entry(tables: _Tables, number: int, text: str) -> None:
    """Parse one line into `tables`."""
    if match := _POINTER.fullmatch(text):
        tables.pointers.update(dict.fromkeys(split(match[2]), match[1]))
    elif match := _SITE.fullmatch(without_comment(text)):
        if int(match[1]) != len(tables.faults):
            raise IRSyntaxError(number, f"expected fault site {len(tables.faults)}, not {match[1]}")
        tables.faults.append(FaultSite(LaneStatus[match[2]], _message(number, match[3]), split(match[4])))
    elif match := _EXTERN.fullmatch(text):
        tables.externs[match[1]] = split(match[2])
    elif match := _STRUCTURE.fullmatch(text):
        tables.structure = _structure(number, match[1])
    elif match := _ORDER.fullmatch(text):
        tables.order += [(number, label) for label in split(match[1])]
    elif match := _MERGED.fullmatch(text):
        tables.merged.append([(number, label) for label in split(match[1])])
    elif match := _NATIVE.fullmatch(text):
        tables.native += [(number, label) for label in split(match[1])]
    else:
        _variable(tables, number, text)


def _variable(tables: _Tables, number: int, text: str) -> None:
    variable = parse_variable(number, text)
    name, type_, storage = variable.name, variable.type, variable.storage
    if storage is None or variable.reason:
        raise IRSyntaxError(number, f"expected a storage class and no more behind {name}")
    if name in (tables.shared if storage == "shared" else tables.storage.keys() | tables.types.keys()):
        raise IRSyntaxError(number, f"{name} is listed twice")
    if storage == "shared":
        tables.shared[name] = type_
        return
    if storage != "temporary":
        tables.storage[name] = storage
    elif type_ is None:
        raise IRSyntaxError(number, f"the temporary {name} has no type")
    if type_ is not None:
        tables.types[name] = type_


def _structure(number: int, text: str) -> StructType:
    try:
        found = parse_type(text)
    except ValueError as error:
        raise IRSyntaxError(number, str(error)) from None
    if not isinstance(found, StructType):
        raise IRSyntaxError(number, f"{found} is no structure")
    return found


def _message(number: int, text: str) -> str:
    try:
        return cast(str, json.loads(text))
    except json.JSONDecodeError as error:
        raise IRSyntaxError(number, f"in the message: {error}") from None
