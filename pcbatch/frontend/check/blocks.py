"""The rules of the syntax check for `with`: its body becomes part of one piece, so nothing in it may branch."""

from __future__ import annotations

from typing import Any

import gast

from pcbatch.frontend.check import refusals
from pcbatch.frontend.check.checker import Checker
from pcbatch.frontend.source.hints import is_debug
from pcbatch.frontend.source.nodes import assigned_in, dotted, target_leaves

CONTROL = (gast.If, gast.While, gast.For, gast.Match, gast.Return, gast.Break, gast.Continue, gast.Assert, gast.Raise)


def with_block(checker: Checker, node: Any) -> None:
    """Context managers, their targets, and a body of assignments."""
    _block(checker, node, frozenset())


def _block(checker: Checker, node: Any, contexts: frozenset[str]) -> None:
    """`contexts` are the names that the blocks around this one have given to their context managers."""
    for item in node.items:
        checker.visit(item.context_expr)
        if item.optional_vars is not None:
            if any(isinstance(leaf, gast.Subscript) for leaf in target_leaves(item.optional_vars)):
                checker.refuse(item.optional_vars, refusals.WITH_STORE)
            checker.target(item.optional_vars)
            contexts |= assigned_in([item.optional_vars])
    for statement in node.body:
        _statement(checker, statement, contexts)


def _statement(checker: Checker, node: Any, contexts: frozenset[str]) -> None:
    match node:
        case gast.With():
            _block(checker, node, contexts)
        case gast.Expr(value=gast.Call(func=gast.Attribute() as method) as call) if _root(method) in contexts:
            checker.visit(call)  # `tape.watch(x)`: what it changes lives in the piece only
        case gast.Expr(value=gast.Call() as call) if is_debug(call, checker.local_names, checker.scope):
            checker.refuse(node, refusals.DEBUG_VALUE)
        case gast.Delete(targets=targets) if any(isinstance(each, gast.Subscript) for each in targets):
            checker.refuse(node, refusals.WITH_STORE)
        case gast.Assign() | gast.AugAssign() | gast.AnnAssign():
            targets = node.targets if isinstance(node, gast.Assign) else [node.target]
            if any(isinstance(leaf, gast.Subscript) for target in targets for leaf in target_leaves(target)):
                checker.refuse(node, refusals.WITH_STORE)
            checker.visit(node)
        case _:
            if isinstance(node, CONTROL):
                checker.refuse(node, refusals.WITH_CONTROL)
            checker.visit(node)


def _root(node: Any) -> str:
    return (dotted(node) or "").partition(".")[0]
