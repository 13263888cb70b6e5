"""Reads a program back from the text that `pcbatch.ir.text.printer` writes: `parse_program(print_program(p)) == p`.

Spans are not in the text. Nor is it which names in an expression are inputs: that follows from which are variables
(`pcbatch.ir.analysis.scope`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast, get_args

from pcbatch.ir.analysis.scope import scope, with_inputs
from pcbatch.ir.program import (
    Block,
    Branch,
    Call,
    Coded,
    Dialect,
    Enter,
    Exit,
    Fault,
    FaultKind,
    Function,
    Jump,
    Op,
    Pop,
    Primitive,
    Program,
    Push,
    PushJump,
    Return,
    StorageKind,
    Store,
    Terminator,
    Update,
    Variable,
)
from pcbatch.ir.text.lines import (
    NAME,
    NAMES,
    IRSyntaxError,
    Line,
    indented,
    lines_of,
    split,
    take,
    without_comment,
)
from pcbatch.ir.text.payload_parser import computed_at, entered_at, explicit_at
from pcbatch.ir.text.type_parser import parse_type_at
from pcbatch.ir.types import Type


def parse_program(text: str) -> Program:
    """The program that `text` denotes; IRSyntaxError where it denotes none."""
    lines = lines_of(text, 1)
    number, header = lines.pop(0) if lines else (1, "")
    if (match := re.fullmatch(rf"program ({'|'.join(get_args(Dialect))})", header)) is None:
        raise IRSyntaxError(number, f"expected 'program cfg' or 'program stack', not {header!r}")
    functions: list[Function] = []
    while lines:
        functions.append(_function(lines))
    if not functions:
        raise IRSyntaxError(number, "a program has at least one function")
    return _with_inputs(Program(cast(Dialect, match[1]), tuple(functions)))


def _with_inputs(program: Program) -> Program:
    """`program` with the inputs of its expressions told from free names, which needs the whole scope."""
    functions = []
    for function in program.functions:
        variables = scope(program, function)
        blocks = (
            replace(block, ops=tuple(with_inputs(each, variables) for each in block.ops)) for block in function.blocks
        )
        functions.append(replace(function, blocks=tuple(blocks)))
    return replace(program, functions=tuple(functions))


# -- functions and blocks ----------------------------------------------------------------------------------------------

_LABEL = re.compile(r"(\w+)(, sync)?:")
COST = r"(?:, cost (?P<cost>[0-9.e+-]+))?"
_FUNCTION = re.compile(rf"function (?P<name>[^\s()]+)\((?P<parameters>{NAMES})?\)(?: -> (?P<results>{NAMES}))?{COST}")
_VARIABLE = re.compile(rf"var (?P<name>{NAME})")
_STORAGE = re.compile(rf"(?:  (?P<storage>{'|'.join(get_args(StorageKind))}))?(?:  -- (?P<reason>.+))?")


def _function(lines: list[Line]) -> Function:
    number, header = lines.pop(0)
    if (match := _FUNCTION.fullmatch(without_comment(header))) is None:
        raise IRSyntaxError(number, f"expected 'function name(parameters) -> results', not {header!r}")
    externs: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    variables: list[Variable] = []
    while indented(lines):
        at, text = take(lines)
        if extern := re.fullmatch(rf"extern ({NAMES})", text):
            externs += split(extern[1])
        elif names := re.fullmatch(rf"made ({NAMES})", text):
            made += split(names[1])
        else:
            variables.append(parse_variable(at, text))
    blocks: list[Block] = []
    while lines and (label := _LABEL.fullmatch(lines[0][1])):
        at, _ = lines.pop(0)
        blocks.append(replace(_block(at, label[1], lines), sync=label[2] is not None))
    if not blocks:
        raise IRSyntaxError(number, f"function {match['name']} has no blocks")
    return Function(
        match["name"],
        split(match["parameters"]),
        split(match["results"]),
        tuple(blocks),
        externs,
        tuple(variables),
        None if match["cost"] is None else parse_cost(number, match["cost"]),
        made,
    )


def parse_cost(number: int, text: str) -> float:
    """Parse the cost of a row."""
    try:
        return float(text)
    except ValueError:
        raise IRSyntaxError(number, f"{text} is no cost") from None


def parse_variable(number: int, text: str) -> Variable:
    """The entry of the table of variables that the line denotes."""
    if (match := _VARIABLE.match(text)) is None:
        raise IRSyntaxError(number, f"expected 'var', 'extern', 'made' or a label, not {text!r}")
    place, type_ = match.end(), cast("Type | None", None)
    if text.startswith(": ", place):
        try:
            type_, place = parse_type_at(text, place + 2)
        except ValueError as error:
            raise IRSyntaxError(number, f"in the type of {match['name']}: {error}") from None
    if (rest := _STORAGE.fullmatch(text, place)) is None:
        raise IRSyntaxError(number, f"expected a storage class or '-- reason' at {text[place:]!r}")
    return Variable(match["name"], type_, cast("StorageKind | None", rest["storage"]), rest["reason"] or "")


def _block(number: int, label: str, lines: list[Line]) -> Block:
    ops: list[Op] = []
    while indented(lines):
        at, text = take(lines)
        text = without_comment(text)
        terminator = _terminator(at, text)
        if terminator is None:
            ops.append(parse_op(at, text))
        elif indented(lines):
            raise IRSyntaxError(lines[0][0], f"block {label} goes on after its terminator")
        else:
            return Block(label, tuple(ops), terminator)
    raise IRSyntaxError(number, f"block {label} has no terminator")


# -- ops and terminators -----------------------------------------------------------------------------------------------

_STORE = re.compile(rf"store ({NAME})\[({NAMES})?\] = ({NAME})")
_CALL = re.compile(rf"(?:({NAMES}) = )?call ([^\s()]+)\(({NAMES})?\)")
_POP = re.compile(rf"pop ({NAMES})")
_CODE_OP = re.compile(r"(push|update) (?![-+*/%@&|^<>=!]+ |(?:in|is|if|and|or|not) )(.*)", re.DOTALL)
_ENTER = re.compile(rf"enter (?={NAME}|[\[({{'\"])(?!(?:in|is|if|and|or|not) )(.*)", re.DOTALL)
_QUOTED = re.compile(r'code (".*")')

_TERMINATORS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Terminator]], ...] = (
    (re.compile(rf"jump ({NAME})(, turn)?"), lambda m: Jump(m[1], m[2] is not None)),
    (re.compile(rf"branch ({NAME}) ({NAME}) ({NAME})"), lambda m: Branch(m[1], m[2], m[3])),
    (re.compile(r"return"), lambda m: Return()),
    (
        re.compile(rf'fault ({"|".join(get_args(FaultKind))}) (".*")(?: ({NAMES}))?'),
        lambda m: Fault(json.loads(m[2]), split(m[3]), cast(FaultKind, m[1])),
    ),
    (re.compile(rf"pushjump ({NAME}), back to ({NAME})"), lambda m: PushJump(m[1], m[2])),
)


def _terminator(number: int, text: str) -> Terminator | None:
    """The terminator that the line denotes, or None where it is an op."""
    for pattern, build in _TERMINATORS:
        if match := pattern.fullmatch(text):
            try:
                return build(match)
            except json.JSONDecodeError as error:
                raise IRSyntaxError(number, f"in the message: {error}") from None
    return None


def parse_op(number: int, text: str) -> Op:
    """The op that the line denotes, the inputs of its code left out."""
    if match := _STORE.fullmatch(text):
        return Store(match[1], split(match[2]), match[3])
    if match := _CALL.fullmatch(text):
        return Call(split(match[1]), match[2], split(match[3]))
    if match := _POP.fullmatch(text):
        return Pop(split(match[1]))
    if text == "exit":
        return Exit()
    kind: type[Coded] = Primitive
    if match := _CODE_OP.fullmatch(text):
        kind, text = (Push if match[1] == "push" else Update), match[2]
    elif match := _ENTER.fullmatch(text):
        kind, text = Enter, match[1]
    try:
        if not issubclass(kind, Enter) and (explicit := explicit_at(text)) is not None:
            return kind(*explicit)
        text = json.loads(match[1]) if (match := _QUOTED.fullmatch(text)) else text
        outputs, code = entered_at(text) if kind is Enter else computed_at(text)
        return kind(outputs, (), code)
    except (SyntaxError, ValueError) as error:
        raise IRSyntaxError(number, f"neither an op nor Python: {text!r} ({error})") from None
