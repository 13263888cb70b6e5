"""What a target of a written-out loop stands for, put in its place; operators on numbers are computed."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping
from typing import Any

import gast

from pcbatch.frontend.source.nodes import literal, names_in
from pcbatch.frontend.source.scopes import Scoped, bound_in, make_room
from pcbatch.frontend.translate.ranges import signed

_BINARY: dict[type[Any], Callable[[int, int], int]] = {
    gast.Add: operator.add,
    gast.Sub: operator.sub,
    gast.Mult: operator.mul,
    gast.FloorDiv: operator.floordiv,
    gast.Mod: operator.mod,
}
_COMPARED: dict[type[Any], Callable[[Any, Any], bool]] = {
    gast.Eq: operator.eq,
    gast.NotEq: operator.ne,
    gast.Lt: operator.lt,
    gast.LtE: operator.le,
    gast.Gt: operator.gt,
    gast.GtE: operator.ge,
}


def substituted(node: Any, values: Mapping[str, Any]) -> Any:
    """A copy of a statement or an expression with expressions in place of names.

    What may run later, a lambda or a generator, reads its names then: it stays as it is.
    """
    return _Substitution(values).visit(copy.deepcopy(node))


class _Substitution(Scoped):
    def __init__(self, values: Mapping[str, Any]):
        self.values = values

    def visit_Name(self, node: Any) -> Any:
        if node.id not in self.values or not isinstance(node.ctx, gast.Load):
            return node
        value = copy.deepcopy(self.values[node.id])
        for each in gast.walk(value):
            gast.copy_location(each, node)
        return value

    def visit_BinOp(self, node: Any) -> Any:
        node = self.generic_visit(node)
        left, right, of = literal(node.left), literal(node.right), _BINARY.get(type(node.op))
        if left is None or right is None or of is None or (right == 0 and type(node.op) in (gast.FloorDiv, gast.Mod)):
            return node
        return gast.copy_location(signed(of(left, right)), node)

    def visit_Compare(self, node: Any) -> Any:
        node = self.generic_visit(node)
        match node:
            case gast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                pair = [_known(left), _known(right)]
                if None not in pair and len({type(each) for each in pair}) == 1:
                    return gast.copy_location(gast.Constant(_COMPARED[type(op)](*pair), None), node)
        return node

    def _later(self, node: Any) -> Any:
        return node

    visit_Lambda = visit_FunctionDef = visit_GeneratorExp = _later

    def inside(self, scope: Any) -> None:
        hidden = bound_in(scope)
        outer, self.values = self.values, {name: each for name, each in self.values.items() if name not in hidden}
        make_room(scope, frozenset().union(*map(names_in, self.values.values())))
        self.generic_visit(scope)
        self.values = outer


def _known(node: Any) -> int | str | None:
    """The number or the text that an expression is."""
    match node:
        case gast.Constant(value=str(text)):
            return str(text)
    return literal(node)
