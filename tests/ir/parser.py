"""Reads a program back from the text that `pcbatch.ir.printer` writes: `parse_program(print_program(p)) == p`.

Spans are not in the text. Nor is it which names in an expression are inputs: that follows from which are variables
(`pcbatch.ir.analysis.dataflow`).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast, get_args

from pcbatch.ir.analysis.dataflow import scope
from pcbatch.ir.expression_parser import expression_of, parse_type, parse_type_at
from pcbatch.ir.payload import (
    Cast,
    Choose,
    Compute,
    Constant,
    Copy,
    Field,
    Index,
    Pack,
    Pattern,
    Payload,
    Replace,
    Truth,
    Unpack,
)
from pcbatch.ir.printer import INDENT, LINE_COMMENT
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
from pcbatch.ir.types import Type
from pcbatch.threads import parse
from tests.ir.inputs import with_inputs

NAME = r"[^\W\d]\w*"
NAMES = rf"{NAME}(?:, {NAME})*"

Line = tuple[int, str]
"""The number of a line and its text."""
Names = tuple[str, ...]


class IRSyntaxError(ValueError):
    """The text is not a program. `line` is the 1-based line of the IR's text."""

    def __init__(self, line: int, message: str):
        self.line = line
        super().__init__(f"line {line}: {message}")


def lines_of(text: str, levels: int) -> list[Line]:
    """Lines that say something: blank and comment lines left out. Indented by `levels` levels at most."""
    lines: list[Line] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(INDENT * levels + " "):
            raise IRSyntaxError(number, "unexpected indentation")
        if line.strip() and not line.lstrip().startswith("#"):
            lines.append((number, line))
    return lines


def indented(lines: list[Line], levels: int = 1) -> bool:
    """Return whether the next line is indented by `levels` levels or more."""
    return bool(lines) and lines[0][1].startswith(INDENT * levels)


def take(lines: list[Line], levels: int = 1) -> Line:
    """The next line without its indentation of `levels` levels."""
    number, text = lines.pop(0)
    return number, text.removeprefix(INDENT * levels)


def without_comment(text: str) -> str:
    """`text` without the `# line 7` behind it."""
    return LINE_COMMENT.sub("", text)


def split(text: str | None) -> tuple[str, ...]:
    """The names of a list that is written `a, b, c`; none for no text."""
    return tuple(text.split(", ")) if text else ()


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Payload]], ...] = tuple(
    (re.compile(rf"(?P<outputs>{NAME}) = {form}"), build)
    for form, build in (
        (rf"copy (?P<inputs>{NAME})", lambda m: Copy()),
        (rf"cast (?P<inputs>{NAME}): (?P<rest>.+)", lambda m: Cast(parse_type(m["rest"]))),
        (rf"truth (?P<inputs>{NAME})", lambda m: Truth()),
        (rf"choose (?P<inputs>{NAMES})", lambda m: Choose()),
        (r"constant: (?P<rest>.+)(?P<inputs>)", lambda m: Constant(ast.literal_eval(m["rest"]))),
        (rf"pack (?P<inputs>{NAMES})", lambda m: Pack()),
        (rf"pack (?P<inputs>{NAMES}): list", lambda m: Pack("list")),
        (rf"index (?P<inputs>{NAME}): (?P<rest>.+)", lambda m: Index(json.loads(m["rest"]))),
        (rf"field (?P<inputs>{NAME}): (?P<rest>{NAME})", lambda m: Field(m["rest"])),
        (rf"replace field (?P<inputs>{NAME}, {NAME}): (?P<rest>{NAME})", lambda m: Replace(Field(m["rest"]))),
        (rf"replace index (?P<inputs>{NAME}, {NAME}): (?P<rest>.+)", lambda m: Replace(Index(json.loads(m["rest"])))),
    )
)
_UNPACK = re.compile(rf"(?P<targets>[\w(), ]+) = unpack (?P<inputs>{NAME})")


def explicit_at(text: str) -> tuple[Names, Names, Payload] | None:
    """Outputs, inputs and payload of the explicit operation that `text` denotes; None where it is none.

    ValueError or SyntaxError for what begins as one and goes on wrongly.
    """
    if match := _UNPACK.fullmatch(text):
        outputs: list[str] = []
        pattern = _pattern(parse(match["targets"], mode="eval").body, outputs)
        return tuple(outputs), (match["inputs"],), Unpack(pattern)
    for form, build in _FORMS:
        if match := form.fullmatch(text):
            inputs = tuple(match["inputs"].split(", ")) if match["inputs"] else ()
            return (match["outputs"],), inputs, build(match)
    return None


def computed_at(text: str) -> tuple[Names, Compute]:
    """Outputs and payload of the statement that `text` is, whose variables are free names as yet.

    SyntaxError or ValueError where it is none that an op may be.
    """
    match parse(text).body:
        case [ast.Assign(targets=[target], value=value)]:
            outputs: list[str] = []
            pattern = None if isinstance(target, ast.Name) else _pattern(target, outputs)
            return tuple(outputs) or (target.id,), Compute(expression_of(value), pattern)  # type: ignore[attr-defined]
        case [ast.Expr(value)]:
            return (), Compute(expression_of(value))
    raise ValueError("expected an expression, or its assignment to names")


def entered_at(text: str) -> tuple[Names, Compute]:
    """Outputs and payload of an Enter, `tf.GradientTape() as tape`; see `computed_at`."""
    match parse(f"with {text}:\n    pass").body:
        case [ast.With(items=[ast.withitem(value, None)])]:
            return (), Compute(expression_of(value))
        case [ast.With(items=[ast.withitem(value, ast.Name(id=name))])]:
            return (name,), Compute(expression_of(value))
        case [ast.With(items=[ast.withitem(value, ast.expr() as target)])]:
            outputs: list[str] = []
            pattern = _pattern(target, outputs)
            return tuple(outputs), Compute(expression_of(value), pattern)
    raise ValueError("expected one context manager")


def _pattern(node: ast.expr, outputs: list[str]) -> Pattern:
    """The pattern of `a, (b, c)`, whose names go to `outputs`."""
    if not isinstance(node, ast.Tuple | ast.List) or not node.elts:
        raise ValueError("expected targets, with commas between them")
    parts: list[Pattern | None] = []
    for each in node.elts:
        if isinstance(each, ast.Name):
            outputs.append(each.id)
            parts.append(None)
        else:
            parts.append(_pattern(each, outputs))
    return tuple(parts)


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
