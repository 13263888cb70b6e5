"""Reads payloads back from text: `y = copy x`, `y = cast x: float32[]`, `a, (b, c) = unpack x`, and Python."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable

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
from pcbatch.ir.text.expression_parser import expression_of
from pcbatch.ir.text.type_parser import parse_type
from pcbatch.syntax import parse

Names = tuple[str, ...]

_NAME = r"[^\W\d]\w*"
_NAMES = rf"{_NAME}(?:, {_NAME})*"
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Payload]], ...] = tuple(
    (re.compile(rf"(?P<outputs>{_NAME}) = {form}"), build)
    for form, build in (
        (rf"copy (?P<inputs>{_NAME})", lambda m: Copy()),
        (rf"cast (?P<inputs>{_NAME}): (?P<rest>.+)", lambda m: Cast(parse_type(m["rest"]))),
        (rf"truth (?P<inputs>{_NAME})", lambda m: Truth()),
        (rf"choose (?P<inputs>{_NAMES})", lambda m: Choose()),
        (r"constant: (?P<rest>.+)(?P<inputs>)", lambda m: Constant(ast.literal_eval(m["rest"]))),
        (rf"pack (?P<inputs>{_NAMES})", lambda m: Pack()),
        (rf"pack (?P<inputs>{_NAMES}): list", lambda m: Pack("list")),
        (rf"index (?P<inputs>{_NAME}): (?P<rest>.+)", lambda m: Index(json.loads(m["rest"]))),
        (rf"field (?P<inputs>{_NAME}): (?P<rest>{_NAME})", lambda m: Field(m["rest"])),
        (rf"replace field (?P<inputs>{_NAME}, {_NAME}): (?P<rest>{_NAME})", lambda m: Replace(Field(m["rest"]))),
        (rf"replace index (?P<inputs>{_NAME}, {_NAME}): (?P<rest>.+)", lambda m: Replace(Index(json.loads(m["rest"])))),
    )
)
_UNPACK = re.compile(rf"(?P<targets>[\w(), ]+) = unpack (?P<inputs>{_NAME})")


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
