"""Paths, `state.rows[i].pos`, that are read later than they stand, or several times: their indices come first.

The object whose method is called is one of them, `p.dist(q.step(x))`: Python has looked the method up before it calls
`step`, but nothing that lanes can keep is a method, and what `p` is after that call is the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import gast

from pcbatch.frontend.source.changes import changed_parts, is_one_part, root_of, steps_of
from pcbatch.frontend.source.nodes import assigned_in, dotted, literal, load


class Expressions(Protocol):
    """What is asked of the translation of a function; see `expressions.Expressions`."""

    @property
    def variables(self) -> Any: ...
    def operand(self, node: Any, later: Sequence[Any] = ()) -> str: ...


def readable(code: Expressions, part: Any, later: Sequence[Any] = ()) -> Any:
    """The path `part` as an expression that may be read several times, its indices having been evaluated."""
    if isinstance(part, gast.Name):
        return load(part.id, part)
    whole = readable(code, part.value, [*([] if isinstance(part, gast.Attribute) else [part.slice]), *later])
    if isinstance(part, gast.Attribute):
        return gast.copy_location(gast.Attribute(whole, part.attr, gast.Load()), part)
    return gast.copy_location(gast.Subscript(whole, settled_index(code, part.slice, later), gast.Load()), part)


def settled_index(code: Expressions, index: Any, later: Sequence[Any]) -> Any:
    """An index that may be read again: what is known without a lane stays as it is written."""
    path = dotted(index)
    is_free = path is not None and path.partition(".")[0] not in code.variables
    if is_free or isinstance(index, gast.Constant) or literal(index) is not None:
        return index
    return load(code.operand(index, later), index)


def is_same_later(code: Expressions, node: Any, later: Sequence[Any]) -> bool:
    """Whether the expression `node` is the method of a path of variables that is the same object after `later`."""
    root = root_of(node)
    if not isinstance(node, gast.Attribute) or root not in code.variables or root in assigned_in(later):
        return False
    steps = steps_of(node.value)
    changed = (part for part in changed_parts(later) if root_of(part) == root)
    return all(map(is_one_part, steps)) and all(len(steps_of(part)) >= len(steps) for part in changed)
