"""Loops whose turns make calls that need nothing of each other: written out, turn by turn, the calls follow each other.

So they can be made at the same time (`optimize.machine.forks`), as those of a comprehension can.

    for k in range(3):
        child = children[node, k]
        total += f(child)           # needs nothing of the turn before
        if child > 0:               # nor does whether this is called
            total += f(child - 1)
        state = f(state)            # needs what the turn before gave

This looks at the syntax alone, and says no where it is not sure: then the loop stays a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast

from pcbatch.frontend.source.nodes import assigned_in, walk

BRANCHES = "other statements than assignments, conditions and loops are in its turns"
DEPENDS = "a call is given what another one gives, or what the turn before has left"
CHOSEN = "a call is an operand of `and` or `or`, or in a condition"
ASKS = "whether a call is made depends on what another one gives, or on what the turn before has left"


def obstacle(loop: Any, is_batched: Callable[[Any], bool]) -> str | None:
    """Why the batched calls in the turns of a `for` loop are not to follow each other; None if they are.

    `is_batched` says it of a Call node.
    """
    turn = _Turn(is_batched, {*assigned_in(loop.body), *_stored_in(loop.body)} - _names(loop.target))
    return turn.run(loop.body)


def has_calls(loop: Any, is_batched: Callable[[Any], bool]) -> bool:
    """Whether there are batched calls in the turns."""
    return any(_calls(each, is_batched) for each in loop.body)


class _Turn:
    """One turn of a loop: which variables are `tainted`, hold what a call or the turn before has given."""

    def __init__(self, is_batched: Callable[[Any], bool], tainted: set[str]):
        self.is_batched, self.tainted = is_batched, tainted

    def run(self, statements: Sequence[Any]) -> str | None:
        """Go through statements; why they do not do, if so."""
        return next((why for why in map(self._statement, statements) if why is not None), None)

    def _statement(self, node: Any) -> str | None:
        match node:
            case gast.Assign(targets=targets, value=value):
                return self._assigned(targets, value, anew=True)
            case gast.AnnAssign(target=target, value=value) if value is not None:
                return self._assigned([target], value, anew=True)
            case gast.AugAssign(target=target, value=value):
                return self._assigned([target], value, anew=False)
            case gast.Expr(value=gast.Call(func=gast.Attribute(value=changed)) as value):
                return self._assigned([changed], value, anew=False)
            case gast.For(target=target, iter=given, body=body, orelse=[]):
                return self._assigned([target], given, anew=True) or self.run(body)
            case gast.If(test=test, body=body, orelse=orelse):
                return self._chosen(test, body, orelse)
            case gast.Pass() | gast.Continue() | gast.Expr(value=gast.Constant()):
                return None
        return BRANCHES

    def _chosen(self, test: Any, body: Sequence[Any], orelse: Sequence[Any]) -> str | None:
        """Go through the arms of a condition: behind them it is not known before what they have assigned."""
        if _calls(test, self.is_batched):
            return CHOSEN
        if any(_calls(each, self.is_batched) for each in (*body, *orelse)) and _names(test) & self.tainted:
            return ASKS
        before, why = {*self.tainted}, self.run(body)
        after, self.tainted = self.tainted, before
        why = why or self.run(orelse)
        self.tainted |= after | assigned_in([*body, *orelse])
        return why

    def _assigned(self, targets: Sequence[Any], value: Any, *, anew: bool) -> str | None:
        calls = _calls(value, self.is_batched)
        for each in calls:
            given = [*each.args, *(keyword.value for keyword in each.keywords)]
            if any(_calls(one, self.is_batched) or _names(one) & self.tainted for one in given):
                return DEPENDS
        if any(_calls(each, self.is_batched) for each in walk(value) if isinstance(each, gast.BoolOp)):
            return CHOSEN
        chosen = [each for each in walk(value) if isinstance(each, gast.IfExp) and _calls(each, self.is_batched)]
        if any(_calls(each.test, self.is_batched) for each in chosen):
            return CHOSEN
        if any(_names(each.test) & self.tainted for each in chosen):
            return ASKS
        names = {name for target in targets for name in _names(target)}
        is_new = anew and all(isinstance(each, gast.Name | gast.Tuple) for each in targets)
        if is_new and not calls and not _names(value) & self.tainted:
            self.tainted -= names
        else:
            self.tainted |= names
        return None


def _calls(node: Any, is_batched: Callable[[Any], bool]) -> list[Any]:
    return [each for each in walk(node) if isinstance(each, gast.Call) and is_batched(each)]


def _names(node: Any) -> set[str]:
    return {each.id for each in walk(node) if isinstance(each, gast.Name)}


def _stored_in(statements: Sequence[Any]) -> set[str]:
    """The variables of which an element, a field or, by a method, something inside may be changed."""
    found: set[str] = set()
    for node in (each for statement in statements for each in walk(statement)):
        match node:
            case gast.Subscript(value=value, ctx=gast.Store()) | gast.Attribute(value=value, ctx=gast.Store()):
                found |= _names(value)
            case gast.Expr(value=gast.Call(func=gast.Attribute(value=value))):
                found |= _names(value)
    return found
