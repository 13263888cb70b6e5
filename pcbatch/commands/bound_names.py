"""Names that a Python file can bind, by its text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from pcbatch.syntax import parse

UNSEEN = {"globals", "vars", "locals", "exec", "eval", "setattr", "__dict__", "__getattr__", "modules"}
"""Names by which a module can bind others that its text does not show."""


def can_bind(text: bytes, name: str) -> bool:
    """Return whether the module of this text can have `name`, or `Class.name`, once imported; True where in doubt."""
    module = parse(text)
    mentioned = {each.id for each in ast.walk(module) if isinstance(each, ast.Name)}
    mentioned |= {each.attr for each in ast.walk(module) if isinstance(each, ast.Attribute)}
    mentioned |= {each.name for each in ast.walk(module) if isinstance(each, ast.FunctionDef)}
    if mentioned & UNSEEN:
        return True
    bound = _bound(module)
    hidden = {each for node in ast.walk(module) if isinstance(node, ast.Global) for each in node.names}
    root, _, rest = name.partition(".")
    if "*" in bound or (root in bound | hidden and not rest):
        return True
    if root not in bound | hidden:
        return False
    owners = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef) and node.name == root]
    is_plain = len(owners) == 1 and root not in hidden and not _is_helped(owners[0]) and "." not in rest
    assigned = {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute) and _is_store(node)}
    return not is_plain or rest in _bound(owners[0]) | assigned


def _is_helped(owner: ast.ClassDef) -> bool:
    """Return whether a class can have names that its body does not bind."""
    return bool(owner.bases or owner.keywords or owner.decorator_list)


def _is_store(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _bound(node: ast.AST) -> set[str]:
    """The names that the statements of a module's or a class's own body bind; "*" if it imports all of a module."""
    found: set[str] = set()
    for child in _own(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name.partition(".")[0])
    return found


def _own(node: ast.AST) -> Iterable[ast.AST]:
    """Every node that runs when the body of `node` does."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own(child)
