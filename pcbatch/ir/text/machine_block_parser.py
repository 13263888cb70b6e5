"""Reads the blocks of a machine program from their text: the second half of `pcbatch.ir.text.machine_parser`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from pcbatch.ir.machine import (
    Block,
    Branch,
    Chunks,
    Deferred,
    Fault,
    Fork,
    ForkedCall,
    Jump,
    Piece,
    Push,
    PushJump,
    Return,
    Statement,
    Store,
    Straight,
    Terminator,
    checked_sites,
)
from pcbatch.ir.text.lines import (
    INDENT,
    NAME,
    NAMES,
    IRSyntaxError,
    Line,
    indented,
    split,
    take,
    without_comment,
)
from pcbatch.ir.text.parser import COST, parse_cost, parse_op

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
_STORE = re.compile(rf"store (?P<array>{NAME})\[(?P<indices>{NAMES})\] = (?P<value>{NAME})  site (?P<site>\d+){_IF}")
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
        return Store(match["array"], split(match["indices"]), match["value"], int(match["site"]), match["predicate"])
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
