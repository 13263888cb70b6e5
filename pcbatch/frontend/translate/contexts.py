"""`with` blocks: inside a piece, so that a gradient tape lives where its gradient is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gast

from pcbatch.errors import Diagnostic
from pcbatch.frontend.source.changes import root_of
from pcbatch.frontend.source.hints import calls
from pcbatch.frontend.source.nodes import INNER_SCOPES, assigned_in, children, unparse
from pcbatch.frontend.translate.expressions import Expressions
from pcbatch.frontend.translate.functions import stands_here
from pcbatch.ir.program import Exit

TAPES = (
    *("tensorflow.GradientTape", "tensorflow._api.v2.GradientTape", "tensorflow.python.eager.backprop.GradientTape"),
    *("tensorflow.autodiff.ForwardAccumulator", "tensorflow.python.eager.forwardprop.ForwardAccumulator"),
)
"""The paths of what takes gradients of all that is done inside its block."""


def emit_with(code: Expressions, node: Any, statement: Callable[[Any], None]) -> None:
    """Emit the block, its assignments by `statement`; batched calls and branches in its expressions are reported."""
    _report(code, node)
    _emit(code, node, statement, frozenset())


def _emit(code: Expressions, node: Any, statement: Callable[[Any], None], contexts: frozenset[str]) -> None:
    """`contexts` are the names that the blocks around this one have given to their context managers."""
    for item in node.items:
        code.enter(item, node)
        contexts |= assigned_in([item.optional_vars]) if item.optional_vars is not None else frozenset()
    for each in node.body:
        match each:
            case gast.With():
                _emit(code, each, statement, contexts)
            case gast.Assign() | gast.AnnAssign() | gast.AugAssign():
                statement(each)
            case gast.Expr(value=gast.Call(func=called)) if root_of(called) not in contexts:
                statement(each)
            case gast.Pass() | gast.Expr(value=gast.Constant()):
                pass
            case _:  # a call of a method of a context manager; the syntax check has refused all else
                code.effect(each)
    for _ in node.items:
        code.draft.emit(Exit(code.span(node)), {})


def _report(code: Expressions, node: Any) -> None:
    for expression, is_taped in _expressions(code, node):
        for part in gast.walk(expression):
            called = (
                code.callees.closure(part.func) if isinstance(part, gast.Call) and code.callees.called(part) else None
            )
            if called is not None and not stands_here(code, called):
                say = _taped if is_taped else _called
                code.report(say(code, part, is_taken=called.source.is_taken))
                break
        else:
            branching = next(_branching(code, expression), None)
            if branching is not None:
                code.report(_refusal(code, branching, "a conditional part calls something", "this would branch"))


def _called(code: Expressions, node: Any, *, is_taken: bool) -> Diagnostic:
    """That a batched function is called, or a helper that cannot be traced."""
    name = unparse(node.func)
    if not is_taken:
        return _refusal(code, node, f"the batched function `{name}` is called", "called here")
    return Diagnostic(
        "PCB107",
        f"the helper `{name}`, which branches or loops on values of a lane, is called inside `with`",
        code.span(node),
        "called here",
        "inside a block it must be one piece: write tf.where for `if`, tf.while_loop(.., maximum_iterations=n) for a "
        "loop, `tf.sin` for `math.sin`",
    )


def _taped(code: Expressions, node: Any, *, is_taken: bool) -> Diagnostic:
    """That a gradient is to go through such a call."""
    name = unparse(node.func)
    what = f"helper `{name}`, which branches or loops on values of a lane" if is_taken else f"batched function `{name}`"
    return Diagnostic(
        "PCB132",
        f"a gradient inside a batched function cannot go through the {what}",
        code.span(node),
        "called on a tape here",
        "take the gradient outside, on a tape around the batch; or make what is differentiated one piece: a plain "
        "function with tf.where for `if` and tf.while_loop(.., maximum_iterations=n) for a loop",
    )


def _refusal(code: Expressions, node: Any, what: str, label: str) -> Diagnostic:
    help_ = "do it before the block or after it, and use its value inside"
    return Diagnostic("PCB107", f"{what} inside `with`", code.span(node), label, help_)


def _expressions(code: Expressions, node: Any, is_taped: bool = False) -> Iterator[tuple[Any, bool]]:
    """The expressions of a block and of the blocks inside it, each with whether a tape sees it."""
    for item in node.items:
        yield item.context_expr, is_taped
        is_taped |= isinstance(item.context_expr, gast.Call) and calls(
            item.context_expr, code.source.locals, code.source.scope, TAPES
        )
    for statement in node.body:
        if isinstance(statement, gast.With):
            yield from _expressions(code, statement, is_taped)
        elif getattr(statement, "value", None) is not None:
            yield statement.value, is_taped


def _branching(code: Expressions, node: Any) -> Iterator[Any]:
    """The conditional expressions inside `node` that need control flow."""
    if not isinstance(node, INNER_SCOPES):
        if code.effects.branches(node):
            yield node
        for child in children(node):
            yield from _branching(code, child)
