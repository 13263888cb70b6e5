"""Finds the operator for a position in a line's bytecode on Python 3.10; later versions record it themselves."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from types import CodeType, TracebackType

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_COMPREHENSIONS: dict[str, type[Comprehension]] = {
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
    "<dictcomp>": ast.DictComp,
    "<genexpr>": ast.GeneratorExp,
}
_SCOPES = (ast.Lambda, *_COMPREHENSIONS.values())
"""Syntax with bytecode of its own."""


def in_order(line: ast.Module, place: TracebackType) -> ast.expr | None:
    """The operator of a `line` of code that is computed at `place`; None where that cannot be told.

    A line's operators and calls are computed in the order in which its bytecode has them: `a + b * f(c)` calls, then
    multiplies, then adds.
    """
    code = place.tb_frame.f_code
    starts = [(start, end) for start, end, number in code.co_lines() if number == place.tb_lineno]
    found = [
        (each.offset, kind)
        for each in dis.get_instructions(code)
        if (kind := _kind(each.opname)) is not None and any(start <= each.offset < end for start, end in starts)
    ]
    kinds = [kind for _, kind in found]
    every = [list(_computed(each)) for each in _bodies(line, code)]
    matches = [nodes for nodes in every if [type(node) for node in nodes] == kinds]
    offsets = [offset for offset, _ in found]
    if len(matches) != 1 or place.tb_lasti not in offsets:
        return None
    return matches[0][offsets.index(place.tb_lasti)]


def _kind(operation: str) -> type[ast.expr] | None:
    """Return the kind of expression that a bytecode of this name computes."""
    if operation.startswith("CALL_"):
        return ast.Call
    if operation in ("COMPARE_OP", "IS_OP", "CONTAINS_OP"):
        return ast.Compare
    if operation.startswith("BINARY_") and operation != "BINARY_SUBSCR":
        return ast.BinOp
    return None


def _bodies(line: ast.Module, code: CodeType) -> list[ast.AST]:
    """The parts of a line that `code` may be of."""
    if code.co_name == "<lambda>":
        return [each.body for each in ast.walk(line) if isinstance(each, ast.Lambda)]
    if code.co_name in _COMPREHENSIONS:
        kind = _COMPREHENSIONS[code.co_name]
        return [_turn(each) for each in ast.walk(line) if isinstance(each, kind)]
    return [line]


def _turn(node: Comprehension) -> ast.Tuple:
    """Return the expressions that a turn of a comprehension computes, in order, without the outermost iterable."""
    parts: list[ast.expr] = []
    for number, each in enumerate(node.generators):
        parts += [each.iter] * (number > 0) + [each.target, *each.ifs]
    parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    return ast.Tuple(parts, ast.Load())


def _computed(node: ast.AST) -> Iterator[ast.expr]:
    """The operators and calls of code in the order in which they are computed."""
    if isinstance(node, ast.Assign):
        parts: list[ast.AST] = [node.value, *node.targets]
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        if not isinstance(part, _SCOPES):
            yield from _computed(part)
    if isinstance(node, ast.BinOp | ast.Compare | ast.Call):
        yield node
