"""Reads a program of the machine dialect back from its text: `parse_machine(print_machine(p)) == p`.

That holds for every program whose pieces are statements. Generated code and spans are not in the text. As in the other
dialects, what a statement reads follows from its code and from which names are variables
(`tests.ir.inputs`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

from pcbatch.ir.expression_parser import parse_type
from pcbatch.ir.machine import (
    Block,
    Branch,
    Chunks,
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
    Statement,
    Store,
    Straight,
    Terminator,
    checked_sites,
)
from pcbatch.ir.types import StructType, Type
from tests.ir.inputs import with_inputs_of_pieces
from tests.ir.parser import (
    COST,
    INDENT,
    NAME,
    NAMES,
    IRSyntaxError,
    Line,
    indented,
    lines_of,
    parse_cost,
    parse_op,
    parse_variable,
    split,
    take,
    without_comment,
)

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
        tuple(number_of(at, label, numbers) for at, label in tables.native),
        tables.externs,
        tables.structure,
    )
    return with_inputs_of_pieces(program)


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
    native: list[tuple[int, str]] = field(default_factory=list)
    externs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    structure: StructType | None = None


_POINTER = re.compile(rf"pointer ({NAME}): ({NAMES})")
_SITE = re.compile(rf'site (\d+): ({"|".join(LaneStatus.__members__)}) (".*")(?: ({NAMES}))?')
_EXTERN = re.compile(rf"extern ([^\s:]+): ({NAMES})")
_STRUCTURE = re.compile(r"structure (.+)")
_ORDER = re.compile(r"order (\w+(?:, \w+)*)")
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


_LABEL = re.compile(rf"(?P<label>\w+)(?P<sync>, sync)?{COST}:")
_ROWS = re.compile(r"rows (\d+)(?:, all from (\d+))?(, in pairs)?")
_TURNS = re.compile(rf"turns ({NAME}) of ({NAME}), at most (\d+), of (\w+)")
_POP = re.compile(rf"pop ({NAMES})")
_PUSH = re.compile(rf"push ({NAME})(?:  saved ({NAME}))?")
_DEAD = re.compile(rf"dead ({NAMES})")


def numbers_of(lines: list[Line]) -> dict[str, int]:
    """The number of every label of the text."""
    numbers: dict[str, int] = {}
    for number, text in lines:
        if match := _LABEL.fullmatch(without_comment(text)):
            if match["label"] in numbers:
                raise IRSyntaxError(number, f"two blocks are labelled {match['label']}")
            numbers[match["label"]] = len(numbers)
    return numbers


def number_of(at: int, label: str, numbers: dict[str, int]) -> int:
    """The number of the block with this label, which line `at` names."""
    if label not in numbers:
        raise IRSyntaxError(at, f"there is no block {label}")
    return numbers[label]


def parse_block(lines: list[Line], numbers: dict[str, int], function: str) -> Block:
    """Parse the next block: rows, turns, pops, items, pushes, dead names, terminator, in this order."""
    number, header = lines.pop(0)
    if (match := _LABEL.fullmatch(without_comment(header))) is None:
        raise IRSyntaxError(number, f"expected 'function name' or a label, not {header!r}")
    rows = _next(lines, _ROWS)
    turns = _next(lines, _TURNS)
    pops = _next(lines, _POP)
    body = []
    while item := _item(lines, function):
        body.append(item)
    pushes = []
    while push := _next(lines, _PUSH):
        pushes.append(Push(push[1], push[2]))
    dead = _next(lines, _DEAD)
    terminator, steps = _end(number, match["label"], lines, numbers)
    return Block(
        match["label"],
        tuple(body),
        terminator,
        split(pops[1]) if pops else (),
        tuple(pushes),
        function,
        steps_site=steps,
        sync=match["sync"] is not None,
        cost=None if match["cost"] is None else parse_cost(number, match["cost"]),
        dead=split(dead[1]) if dead else (),
        chunks=Chunks(int(rows[1]), None if rows[2] is None else int(rows[2]), rows[3] is not None) if rows else None,
        deferred=Deferred(turns[1], turns[2], int(turns[3]), number_of(number, turns[4], numbers)) if turns else None,
    )


def _next(lines: list[Line], pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The match of the next line of the block, which is taken if `pattern` matches all of it."""
    if not indented(lines) or indented(lines, 2):
        return None
    match = pattern.fullmatch(lines[0][1].removeprefix(INDENT))
    if match is not None:
        lines.pop(0)
    return match


# -- items -------------------------------------------------------------------------------------------------------------

_IF = rf"(?:  if (?P<predicate>{NAME}))?"
_STORE = re.compile(rf"store (?P<array>{NAME})\[(?P<indices>{NAMES})\] = (?P<value>{NAME})(  site (?P<site>\d+))?{_IF}")
_PIECE = re.compile(
    rf"piece \((?P<reads>{NAMES})?\)(?: -> (?P<writes>{NAMES}))?(?:  shared (?P<shared>{NAMES}))?"
    rf"(?:  sites (?P<sites>-|\d+(?:, \d+)*))?(?:  of (?P<scope>[^\s:]+))?(?P<tapes>  tapes)?"
    rf"(?P<speculative>  speculative)?{_IF}:"
)
_GENERATED = re.compile(r"piece (\S+)\(.*")
_SITE_OF = r"(?:-|\d+)"
_CHECK = re.compile(rf"check ({_SITE_OF}(?:, {_SITE_OF})*): (.*)", re.DOTALL)


def _item(lines: list[Line], function: str) -> Piece | Store | None:
    """The item that comes next, or None where no more come."""
    if match := _next(lines, _STORE):
        site = None if match["site"] is None else int(match["site"])
        return Store(match["array"], split(match["indices"]), match["value"], site, match["predicate"])
    if match := _next(lines, _PIECE):
        statements = []
        while indented(lines, 2):
            statements.append(_statement(*take(lines, 2)))
        sites = checked_sites(statements)
        if match["sites"] is not None:
            sites = () if match["sites"] == "-" else tuple(map(int, split(match["sites"])))
        return Piece(
            None,
            split(match["reads"]),
            split(match["writes"]),
            split(match["shared"]),
            sites,
            tapes=match["tapes"] is not None,
            statements=tuple(statements),
            predicate=match["predicate"],
            scope={None: function, "-": ""}.get(match["scope"], match["scope"]),
            speculative=match["speculative"] is not None,
        )
    if indented(lines) and (generated := _GENERATED.fullmatch(lines[0][1].strip())):
        raise IRSyntaxError(
            lines[0][0], f"the piece {generated[1]} is generated code: its statements are not in the text"
        )
    return None


def _statement(number: int, text: str) -> Statement:
    text = without_comment(text)
    match = _CHECK.fullmatch(text)
    op = parse_op(number, match[2] if match else text)
    if not isinstance(op, Straight):
        raise IRSyntaxError(number, f"{type(op).__name__} cannot be inside a piece")
    if match is None:
        return Statement(op)
    sites = tuple(None if site == "-" else int(site) for site in split(match[1]))
    return Statement(op, sites)


# -- terminators -------------------------------------------------------------------------------------------------------

_BRANCH = rf"branch ({NAME}) ({NAME}) ({NAME})"
_TARGET = rf"(?:{_BRANCH}|({NAME}))"
_GIVEN = rf"{NAME} = {NAME}"
_FORKED = rf"\((?:{_GIVEN}(?:, {_GIVEN})*)?\)(?: -> {_GIVEN}(?:, {_GIVEN})*)?(?: if {NAME})?"
_FORK = rf"(?:, fork ({_FORKED}(?:; {_FORKED})*); join ({NAME}))?"
_STEPS = re.compile(r"(.*?)(?:  steps (-?\d+))?")


def _end(number: int, label: str, lines: list[Line], numbers: dict[str, int]) -> tuple[Terminator, int]:
    """The terminator of the block with this label, and the fault site for a step too many."""
    if not indented(lines):
        raise IRSyntaxError(number, f"block {label} has no terminator")
    at, text = take(lines)
    steps = _STEPS.fullmatch(text)
    assert steps is not None
    if (terminator := _terminator(at, steps[1], numbers)) is None:
        raise IRSyntaxError(at, f"neither a terminator nor anything else that may stand here in a block: {text!r}")
    if indented(lines):
        raise IRSyntaxError(lines[0][0], f"block {label} goes on after its terminator")
    return terminator, -1 if steps[2] is None else int(steps[2])


def _terminator(at: int, text: str, numbers: dict[str, int]) -> Terminator | None:
    """The terminator that the line denotes, or None where it denotes none."""

    def place(label: str) -> int:
        return number_of(at, label, numbers)

    def branch(match: re.Match[str]) -> Branch:
        return Branch(match[1], place(match[2]), place(match[3]))

    def target(match: re.Match[str]) -> int | Branch:
        return branch(match) if match[4] is None else place(match[4])

    def fork(match: re.Match[str], group: int) -> Fork | None:
        return None if match[group] is None else _fork(match[group], place(match[group + 1]))

    kinds: tuple[tuple[str, Callable[[re.Match[str]], Terminator]], ...] = (
        (rf"jump {_TARGET}(, turn)?", lambda m: Jump(target(m), m[5] is not None)),
        (_BRANCH + _FORK, lambda m: replace(branch(m), fork=fork(m, 4))),
        (r"return", lambda m: Return()),
        (r"fault (\d+)", lambda m: Fault(int(m[1]))),
        (
            rf"pushjump {_TARGET}, back to ({NAME}), site (\d+){_FORK}",
            lambda m: PushJump(target(m), place(m[5]), int(m[6]), fork=fork(m, 7)),
        ),
    )
    for pattern, build in kinds:
        if match := re.fullmatch(pattern, text):
            return build(match)
    return None


def _fork(text: str, join: int) -> Fork:
    """The fork that `(n = t1) -> s = r; (n = t2) -> t = r` denotes."""
    calls = []
    for each in text.split("; "):
        call, _, condition = each.partition(" if ")
        inside, _, results = call.removeprefix("(").partition(")")
        calls.append(ForkedCall(_pairs(inside), _pairs(results.removeprefix(" -> ")), condition or None))
    return Fork(tuple(calls), join)


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs that `a = b, c = d` denotes."""
    pairs = (pair.partition(" = ") for pair in split(text))
    return tuple((one, other) for one, _, other in pairs)
