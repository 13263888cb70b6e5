"""Small helpers on gast trees: spans, dotted names, Python text, names that are read and assigned."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import gast

from pcbatch.errors import Span

INNER_SCOPES = (gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
_SCOPES = (gast.FunctionDef, *INNER_SCOPES)


def span_of(node: Any, file: str) -> Span:
    """The source that `node` covers; for a compound statement its header only."""
    end = node
    match node:
        case gast.If(test=test) | gast.While(test=test):
            end = test
        case gast.For(iter=iterable):
            end = iterable
        case gast.With(items=items):
            end = items[-1].optional_vars or items[-1].context_expr
        case gast.Try() | gast.TryStar():
            return Span(file, node.lineno, node.col_offset, node.lineno, node.col_offset + len("try"))
        case gast.Match(subject=subject):
            end = subject
        case gast.FunctionDef(name=name):
            width = len("def ") + len(name)
            return Span(file, node.lineno, node.col_offset, node.lineno, node.col_offset + width)
        case gast.ClassDef(name=name):
            width = len("class ") + len(name)
            return Span(file, node.lineno, node.col_offset, node.lineno, node.col_offset + width)
        case gast.AsyncFunctionDef() | gast.AsyncFor() | gast.AsyncWith():
            return Span(file, node.lineno, node.col_offset, node.lineno, node.col_offset + len("async"))
    return Span(file, node.lineno, node.col_offset, end.end_lineno, end.end_col_offset)


def dotted(node: Any) -> str | None:
    """`"a.b.c"` for a name or a chain of attributes of a name, else None."""
    match node:
        case gast.Name(id=name):
            return name
        case gast.Attribute(value=value, attr=attr):
            base = dotted(value)
            return None if base is None else f"{base}.{attr}"
    return None


def unparse(node: Any) -> str:
    """Python text of an expression or a statement, an assignment as Python 3.11 and later print it.

    (Python 3.10 puts parentheses around the targets of `a, b = b, a`.)
    """
    if not isinstance(node, gast.Assign):
        return ast.unparse(gast.gast_to_ast(node))
    targets = [unparse(target) for target in node.targets]
    bare = [
        text[1:-1] if isinstance(target, gast.Tuple) and target.elts and text.startswith("(") else text
        for target, text in zip(node.targets, targets, strict=True)
    ]
    return " = ".join([*bare, unparse(node.value)])


def children(node: Any) -> list[Any]:
    """Return the children of a node, in order, without mere marks: operators, and the contexts of names."""
    found: list[Any] = []
    for name in _parts(type(node)):
        value = getattr(node, name, None)
        if type(value) is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif value is not None and isinstance(value, ast.AST):
            found.append(value)
    return found


_NO_PARTS = frozenset({"ctx", "op", "ops", "id", "attr", "type_comment", "kind"})
"""Fields with marks and with texts."""


@functools.cache
def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a class of nodes that may have nodes in them."""
    if issubclass(kind, (gast.Constant, ast.Constant)):
        return ()
    return tuple(name for name in kind._fields if name not in _NO_PARTS)


def walk(node: Any) -> Iterator[Any]:
    """A node and all inside of it, outermost and leftmost first; see `children`."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(children(found))


def walk_scope(node: Any) -> Iterator[Any]:
    """`node` and everything inside it that belongs to the same scope, outermost and leftmost first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        is_scope = isinstance(found, _SCOPES)
        waiting += reversed(evaluated_around(found) if is_scope else children(found))


def evaluated_around(scope: Any) -> list[Any]:
    """Return the parts evaluated around a function or a comprehension: defaults, a comprehension's first iterable."""
    if isinstance(scope, gast.Lambda | gast.FunctionDef):
        return [*scope.args.defaults, *(each for each in scope.args.kw_defaults if each is not None)]
    return [scope.generators[0].iter]


def assigned_name(node: Any) -> str | None:
    """The name that a single node assigns: a target, or a pattern of `match` that captures."""
    if isinstance(node, gast.Name):
        return str(node.id) if isinstance(node.ctx, gast.Store) else None
    return str(node.name) if _captures(node) else None


def _captures(node: Any) -> bool:
    return isinstance(node, gast.MatchAs | gast.MatchStar) and node.name is not None


def assigned_in(nodes: Sequence[Any]) -> frozenset[str]:
    """The names that `nodes` assign in their own scope (element stores apart)."""
    found = (assigned_name(each) for node in nodes for each in walk_scope(node))
    return frozenset(name for name in found if name is not None)


def parameters(arguments: Any) -> list[Any]:
    """The Name nodes of all parameters of a definition."""
    every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [each for each in every if each is not None]
