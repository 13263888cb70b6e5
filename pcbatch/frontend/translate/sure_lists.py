"""Which variables hold a list or a dict whatever runs, by the way they are written.

What is stored into an array is copied; a list or a dict holds the object itself: `xs[0] = p` gives `p` a second name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pcbatch.frontend.translate.changed_objects import changed_name
from pcbatch.frontend.translate.references import KindOf
from pcbatch.ir.program import Function, Primitive, assigned_value, writes


def depths_of_lists(function: Function, kind_of: KindOf) -> dict[str, int]:
    """The variables that only lists and dicts are assigned to, and how deep these are: 2 for `[[x], [y, z]]`."""
    depths = dict.fromkeys(function.parameters, 0)
    for op in (each for block in function.blocks for each in block.ops):
        value = assigned_value(op) if isinstance(op, Primitive) else None
        depth = 0 if value is None else _depth(value, kind_of)
        for name in writes(op) if changed_name(op) is None else ():
            depths[name] = min(depth, depths.get(name, depth))
    return {name: depth for name, depth in depths.items() if depth > 0}


def _depth(value: ast.expr, kind_of: KindOf) -> int:
    match value:
        case ast.List(elts=parts) | ast.Dict(values=parts):
            return 1 + min(_depths(parts, kind_of), default=0)
        case ast.ListComp(elt=part) | ast.DictComp(value=part):
            return 1 + _depth(part, kind_of)
        case ast.BinOp(left=ast.List() as display, op=ast.Mult(), right=ast.Constant()):
            return _depth(display, kind_of)
        case ast.BinOp(left=left, op=ast.Add(), right=right):  # an array and a list give an array
            return min(_depths([left, right], kind_of))
        case ast.Call(func=ast.Name(id="list" | "dict")) if kind_of(value) == "copy":
            return 1
    return 0


def _depths(parts: list[ast.expr], kind_of: KindOf) -> Iterator[int]:
    return (_depth(part, kind_of) for part in parts)
