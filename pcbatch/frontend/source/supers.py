"""`super().f(..)` in methods, and `super(C, self).f(..)`: what `f` is of the classes behind the one that is meant.

Python knows that class by a variable of the method, `__class__`, and `self` as its first parameter. Both belong to the
method, not to functions inside it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import gast

SUPER = "_pcb_super"
"""Begins the names by which a method of an object that is the same for all lanes knows its `super()`."""
Replace = Callable[[Any, type], Any]
"""Gives what stands for an attribute of `super()`, or for its call; the node itself where nothing does."""


def supers_in(tree: Any, function: FunctionType) -> Iterator[tuple[str, type]]:
    """The attributes of `super()` that a method reads, and the classes behind which these are looked for."""
    for node in gast.walk(tree):
        cls = class_behind(node, tree, function) if isinstance(node, gast.Attribute) else None
        if cls is not None:
            yield node.attr, cls


def class_behind(node: Any, tree: Any, function: FunctionType) -> type | None:
    """The class behind which `node`, an attribute of `super()`, is looked for; None where it is something else."""
    match node:
        case gast.Attribute(value=gast.Call(func=gast.Name(id="super"), args=[], keywords=[])):
            found = _known(function, "__class__")
        case gast.Attribute(
            value=gast.Call(func=gast.Name(id="super"), args=[gast.Name(id=name), gast.Name(id=receiver)], keywords=[])
        ) if [each.id for each in (*tree.args.posonlyargs, *tree.args.args)][:1] == [receiver]:
            found = _known(function, name)
        case _:
            return None
    is_pythons = _known(function, "super") is super
    return found if is_pythons and isinstance(found, type) else None


def _known(function: FunctionType, name: str) -> Any:
    """What a name means around a method, None if nothing yet."""
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return None
    return function.__globals__.get(name, getattr(builtins, name, None))


class Supers(gast.NodeTransformer):  # type: ignore[misc]  # gast has no types
    """Puts what `replace` gives in the place of attributes of `super()`, and of their calls, in a method `tree`."""

    def __init__(self, tree: Any, function: FunctionType, replace: Replace):
        self.tree, self.function, self.replace = tree, function, replace

    def visit_FunctionDef(self, node: Any) -> Any:
        return self.generic_visit(node) if node is self.tree else node

    def visit_Lambda(self, node: Any) -> Any:
        return node

    def visit_Call(self, node: Any) -> Any:
        cls = class_behind(node.func, self.tree, self.function)
        if cls is None:
            return self.generic_visit(node)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        return self.replace(node, cls)

    def visit_Attribute(self, node: Any) -> Any:
        cls = class_behind(node, self.tree, self.function)
        if cls is not None and isinstance(node.ctx, gast.Load):
            return self.replace(node, cls)
        return self.generic_visit(node)
