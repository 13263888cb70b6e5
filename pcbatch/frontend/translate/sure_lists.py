"""Which variables hold a list or a dict whatever runs, by the way they are written.

What is stored into an array is copied; a list or a dict holds the object itself: `xs[0] = p` gives `p` a second name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from pcbatch.frontend.translate.changed_objects import OF_ELEMENTS, OF_NOTHING, OF_ONE, Change, changed_by
from pcbatch.frontend.translate.references import LIMIT, KindOf, elements_in_lists
from pcbatch.frontend.translate.sequences import ELEMENT
from pcbatch.ir.program import Function, Op, Primitive, Store, assigned_value, writes


def depths_of_lists(function: Function, kind_of: KindOf) -> dict[str, int]:
    """The variables that only lists and dicts are assigned to, and how deep these are: 2 for `[[x], [y, z]]`."""
    ops = [op for block in function.blocks for op in block.ops]
    depths = {name: LIMIT for op in ops for name in writes(op)} | dict.fromkeys(function.parameters, 0)
    while True:
        found = dict(depths)
        for op in ops:
            for name in writes(op):
                found[name] = min(found[name], _depth_given(op, name, kind_of, depths))
        if found == depths:
            return {name: depth for name, depth in depths.items() if depth > 0}
        depths = found


def _depth_given(op: Op, name: str, kind_of: KindOf, depths: Mapping[str, int]) -> int:
    """How deep a list is at most that `op` assigns to `name`; what changes stays a list."""
    if isinstance(op, Store):
        return 1 + depths.get(op.value, 0)
    change = changed_by(op)
    if change is not None:
        return _depth_changed(change, kind_of, depths) if name == change.place[0] else 0
    value = assigned_value(op) if isinstance(op, Primitive) else None
    return 0 if value is None else _depth(value, kind_of, depths)


def _depth_changed(change: Change, kind_of: KindOf, depths: Mapping[str, int]) -> int:
    """How deep the variable is at most in which something changes: as deep as what comes into it."""
    deep = len(change.place[1])
    kept = LIMIT if not change.given else _depth(change.given[-1], kind_of, depths)
    if change.is_put_back or change.method in {*OF_NOTHING, "pop", "__delitem__"}:
        return LIMIT
    if change.step is not None or change.method in OF_ONE:
        return deep + 1 + kept
    return deep + kept if change.method in OF_ELEMENTS else deep


def _depth(value: ast.expr, kind_of: KindOf, depths: Mapping[str, int]) -> int:
    def of(part: ast.expr) -> int:
        return _depth(part, kind_of, depths)

    match value:
        case ast.Name(id=name):
            return depths.get(name, 0)
        case ast.List(elts=parts) | ast.Dict(values=parts):
            return 1 + _least(map(of, parts))
        case ast.ListComp(elt=part) | ast.DictComp(value=part):
            nodes = (node for each in value.generators for node in ast.walk(each.target))
            bound = {node.id for node in nodes if isinstance(node, ast.Name)}
            known = {name: depth for name, depth in depths.items() if name not in bound}
            return 1 + _depth(part, kind_of, known | elements_in_lists(value.generators, depths))
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int())):
            return of(left)
        case ast.BinOp(left=left, op=ast.Add(), right=right):  # an array and a list give an array
            return min(of(left), of(right))
        case ast.IfExp(body=body, orelse=orelse):
            return min(of(body), of(orelse))
        case ast.Subscript(value=ast.Name() as whole, slice=ast.Slice()):
            return of(whole)
        case ast.Subscript(value=ast.Name() as whole, slice=ast.Constant() | ast.Name()):
            return max(of(whole) - 1, 0)
        case ast.Call(func=ast.Name(id=name), args=[whole, *_]) if name == ELEMENT:
            return max(of(whole) - 1, 0)
        case ast.Call(func=ast.Name(id="list" | "dict" | "sorted")) if kind_of(value) in ("copy", "row"):
            return 1
        case ast.Call(func=ast.Attribute(value=ast.Name() as whole, attr="copy"), args=[]):
            return of(whole)
    return 0


def _least(depths: Iterable[int]) -> int:
    return min(depths, default=0)
