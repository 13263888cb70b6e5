"""Reads explicit operations back from text: `y = copy x`, `y = cast x: float32[]`, `a, (b, c) = unpack x`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable

from pcbatch.ir.payload import (
    Cast,
    Choose,
    Constant,
    Copy,
    Explicit,
    Field,
    Index,
    Pack,
    Pattern,
    Replace,
    Truth,
    Unpack,
)
from pcbatch.ir.text.type_parser import parse_type
from pcbatch.syntax import parse

Names = tuple[str, ...]

_NAME = r"[^\W\d]\w*"
_NAMES = rf"{_NAME}(?:, {_NAME})*"
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Explicit]], ...] = tuple(
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


def explicit_at(text: str) -> tuple[Names, Names, Explicit] | None:
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


def _pattern(node: ast.expr, outputs: list[str]) -> Pattern:
    """The pattern of `a, (b, c)`, whose names go to `outputs`."""
    if not isinstance(node, ast.Tuple) or not node.elts:
        raise ValueError("expected targets, with commas between them")
    parts: list[Pattern | None] = []
    for each in node.elts:
        if isinstance(each, ast.Name):
            outputs.append(each.id)
            parts.append(None)
        else:
            parts.append(_pattern(each, outputs))
    return tuple(parts)
