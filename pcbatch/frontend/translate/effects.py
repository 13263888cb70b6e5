"""What an expression does besides computing: which must be taken apart, which operands need control flow.

An expression stays whole unless it contains a batched call, an assignment, a `xs.pop()`, or a conditional operand
(right of `and` or `or`, an arm of a conditional expression, a later link of a chained comparison) that is expensive,
that is, contains a call other than of a cheap builtin. Cheap conditional operands are computed for all lanes and
selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gast

from pcbatch.frontend.source.changes import takes
from pcbatch.frontend.source.iteration import reduced
from pcbatch.frontend.source.mapping import is_map
from pcbatch.frontend.source.nodes import INNER_SCOPES, children, evaluated_around

CHEAP_BUILTINS = frozenset({"abs", "min", "max", "int", "float", "bool", "round", "len", "range"})
CHECKED_OPERATORS = gast.FloorDiv | gast.Mod
SAFE_BESIDE_LITERALS = gast.Div | gast.Pow | gast.LShift | gast.RShift
"""Operators that are checked too, unless their right operand is a literal, of which zero alone may fail."""
CHECKED_BUILTINS = frozenset({"divmod", "int", "pow", "round"})


@dataclass(frozen=True)
class Effects:
    """Questions about expressions of one function.

    `is_batched` says whether a Call node calls a batched function, `is_builtin` whether a name there means the builtin,
    `is_math` whether what is called is a function of Python's `math`, `has_calls` whether a comprehension calls batched
    functions.
    """

    is_batched: Callable[[Any], bool]
    is_builtin: Callable[[str], bool]
    is_math: Callable[[Any], bool]
    has_calls: Callable[[Any], bool] = lambda node: False
    is_wanted: Callable[[Any], bool] = lambda node: False
    """Whether a comprehension cannot be traced as it stands."""
    is_called_key: Callable[[Any], bool] = lambda node: False
    """Whether the `key=..` of a call calls functions of the program."""

    def splits(self, node: Any) -> bool:
        """Whether the expression must be taken apart."""
        if isinstance(node, INNER_SCOPES):
            return self.is_unrolled(node)
        if isinstance(node, gast.NamedExpr) or self.branches(node):
            return True
        if isinstance(node, gast.Call) and (self.is_batched(node) or takes(node) or self.is_unrolled(node)):
            return True
        return any(self.splits(child) for child in children(node))

    def is_unrolled(self, node: Any) -> bool:
        """Whether a comprehension, `any(..)` or `all(..)` of a generator, or a map is written out, or is a loop."""
        if self.is_loop(node) or is_map(node):
            return True
        match node:
            case gast.ListComp():
                return self.has_calls(node) or self.is_wanted(node)
            case gast.GeneratorExp():  # one that is kept reads what variables hold when it is used
                return self.has_calls(node) or (hasattr(node, "is_consumed") and self.is_wanted(node))
            case gast.Call(
                func=gast.Name(id="any" | "all" as name), args=[gast.GeneratorExp() as generator], keywords=[]
            ):
                return self.is_builtin(name) and self.has_calls(generator)
        return False

    def is_loop(self, node: Any) -> bool:
        """Whether a `sum(..)` or the like of a comprehension is a loop of the program."""
        given = reduced(node, self.is_builtin)
        if given is None:
            return False
        if self.is_wanted(given) or self.is_called_key(node):
            return True
        return self.has_calls(given) and any(each.ifs for each in given.generators)

    def branches(self, node: Any) -> bool:
        """Whether one of the expression's own conditional operands needs control flow."""
        return any(self.expensive(operand) for operand in conditional_operands(node))

    def controls(self, node: Any) -> bool:
        """Whether deciding the truth of the expression takes more than one branch."""
        match node:
            case gast.UnaryOp(op=gast.Not(), operand=operand):
                return self.controls(operand)
            case gast.BoolOp(values=values):
                return self.branches(node) or any(map(self.controls, values))
        return self.branches(node)

    def expensive(self, node: Any) -> bool:
        """Whether an expression is worth a branch around it, or must have one."""
        if isinstance(node, gast.Lambda):
            return False
        if isinstance(node, gast.NamedExpr | gast.ListComp | gast.DictComp | gast.GeneratorExp):
            return True
        if isinstance(node, gast.Call) and not self._cheap(node):
            return True
        return any(self.expensive(child) for child in children(node))

    def _cheap(self, node: Any) -> bool:
        name = node.func.id if isinstance(node.func, gast.Name) else ""
        return name in CHEAP_BUILTINS and self.is_builtin(name)

    def may_fault(self, node: Any) -> bool:
        """Whether evaluating the expression can fail a lane: a checked operator or function, an element read."""
        for each in _evaluated(node):
            match each:
                case gast.BinOp(op=op) if isinstance(op, CHECKED_OPERATORS):
                    return True
                case gast.BinOp(op=op, right=right) if isinstance(op, SAFE_BESIDE_LITERALS):
                    if not isinstance(right, gast.Constant) or right.value == 0:
                        return True
                case gast.Subscript(ctx=gast.Load()):
                    return True
                case gast.Call(func=gast.Name(id=name)) if name in CHECKED_BUILTINS:
                    return True
                case gast.Call(func=gast.Attribute(attr="index")):
                    return True
                case gast.Call(func=function) if self.is_math(function):
                    return True
        return False

    def is_boolean(self, node: Any, known: Callable[[str], bool]) -> bool:
        """Whether the value is a bool whatever its operands are; `known` says so of variables."""
        match node:
            case gast.Compare() | gast.UnaryOp(op=gast.Not()):
                return True
            case gast.Constant(value=value):
                return isinstance(value, bool)
            case gast.BoolOp(values=values):
                return all(self.is_boolean(value, known) for value in values)
            case gast.IfExp(body=body, orelse=orelse):
                return self.is_boolean(body, known) and self.is_boolean(orelse, known)
            case gast.Call(func=gast.Name(id="bool")):
                return self.is_builtin("bool")
            case gast.Name(id=name):
                return known(name)
        return False


def _evaluated(node: Any) -> Iterator[Any]:
    """`node` and what is evaluated with it: everything inside but bodies of lambdas."""
    yield node
    for child in evaluated_around(node) if isinstance(node, gast.Lambda) else gast.iter_child_nodes(node):
        yield from _evaluated(child)


def conditional_operands(node: Any) -> list[Any]:
    """The operands of an expression that Python may leave unevaluated."""
    match node:
        case gast.BoolOp(values=values):
            return list(values[1:])
        case gast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case gast.Compare(comparators=comparators):
            return list(comparators[1:])
    return []
