"""`with` blocks: one statement of a piece, so that a gradient tape lives where its gradient is asked for."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import gast

from pcbatch.diagnostics import Diagnostic
from pcbatch.frontend.expressions import Expressions
from pcbatch.frontend.nodes import INNER_SCOPES, children, load, unparse


def emit_with(code: Expressions, node: Any) -> None:
    """Emit the block as one statement; batched calls and branches inside its expressions are reported."""
    for expression in _expressions(node):
        for part in gast.walk(expression):
            if isinstance(part, gast.Call) and code.callees.called(part) is not None:
                code.report(
                    _refusal(code, part, f"the batched function `{unparse(part.func)}` is called", "called here")
                )
                break
        else:
            branching = next(_branching(code, expression), None)
            if branching is not None:
                code.report(_refusal(code, branching, "a conditional part calls something", "this would branch"))
    code.statement_text(unparse(_normal(node)), node)


def _refusal(code: Expressions, node: Any, what: str, label: str) -> Diagnostic:
    help_ = "do it before the block or after it, and use its value inside"
    return Diagnostic("PCB107", f"{what} inside `with`", code.span(node), label, help_)


def _expressions(node: Any) -> Iterator[Any]:
    """The expressions of a block and of the blocks inside it."""
    for item in node.items:
        yield item.context_expr
    for statement in node.body:
        if isinstance(statement, gast.With):
            yield from _expressions(statement)
        elif getattr(statement, "value", None) is not None:
            yield statement.value


def _branching(code: Expressions, node: Any) -> Iterator[Any]:
    """The conditional expressions inside `node` that need control flow."""
    if not isinstance(node, INNER_SCOPES):
        if code.effects.branches(node):
            yield node
        for child in children(node):
            yield from _branching(code, child)


def _normal(node: Any) -> Any:
    """The block with plain assignments for `a += b` and `a: int = b`, which mean the same."""
    result = copy.copy(node)
    result.body = [each for statement in node.body for each in _simple(statement)] or [gast.Pass()]
    return result


def _simple(node: Any) -> list[Any]:
    match node:
        case gast.With():
            return [_normal(node)]
        case gast.AugAssign(target=target, op=op, value=value):
            return [gast.copy_location(gast.Assign([target], gast.BinOp(load(target.id), op, value), None), node)]
        case gast.AnnAssign(target=target, value=value):
            return [] if value is None else [gast.copy_location(gast.Assign([target], value, None), node)]
        case gast.Pass() | gast.Expr(value=gast.Constant()):
            return []
    return [node]
