"""Chains of conditions: `and`, `or` and chained comparisons as the conditions that are tested one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gast

from pcbatch.frontend.source.changes import changed_in
from pcbatch.frontend.source.nodes import assigned_in, load, store
from pcbatch.frontend.translate.effects import Effects


def stops_if_true(node: Any) -> bool:
    """Whether the first true condition decides a chain (`or`), not the first false one."""
    return isinstance(node, gast.BoolOp) and isinstance(node.op, gast.Or)


def links(node: Any, effects: Effects, temporary: Callable[[], str]) -> list[Any]:
    """The conditions that a chain of `and`, of `or` or of comparisons tests one after the other.

    Cheap operands stay together with what is before them.
    """
    if isinstance(node, gast.Compare):
        return _comparisons(node, temporary)
    groups: list[list[Any]] = []
    for value in node.values:
        if groups and not effects.expensive(value) and not effects.controls(groups[-1][0]):
            groups[-1].append(value)
        else:
            groups.append([value])
    return [
        group[0] if len(group) == 1 else _located(gast.BoolOp(node.op, group), group[0], group[-1]) for group in groups
    ]


def _comparisons(node: Any, temporary: Callable[[], str]) -> list[Any]:
    """`a < f(x) < g(y)` as `a < (t := f(x))`, `t < g(y)`: each shared operand is evaluated once."""
    found: list[Any] = []
    left = node.left
    for index, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
        shared = right
        last = index == len(node.ops) - 1
        lasting = isinstance(right, gast.Constant) or (
            isinstance(right, gast.Name)
            and right.id not in assigned_in(later := node.comparators[index + 1 :]) | changed_in(later)
        )
        if not last and not lasting:
            name = temporary()
            right = gast.copy_location(gast.NamedExpr(store(name), right), right)
            shared = load(name, right)
        found.append(_located(gast.Compare(left, [op], [right]), left, right))
        left = shared
    return found


def _located(node: Any, first: Any, last: Any) -> Any:
    """`node` placed from the beginning of `first` to the end of `last`."""
    gast.copy_location(node, first)
    node.end_lineno, node.end_col_offset = last.end_lineno, last.end_col_offset
    return node
