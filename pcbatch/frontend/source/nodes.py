"""Small helpers on gast trees: spans, dotted names, Python text, names that are read and assigned."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import gast

from pcbatch.errors import Span

INNER_SCOPES = (gast.Lambda, gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


CONSUMERS = frozenset({"all", "any", "list", "max", "min", "sum", "tuple"})
"""Built-in functions that go over a generator once, from its beginning."""


def consumed_by(node: Any) -> list[Any]:
    """The generator that a call takes, alone, and goes over at once, if it calls a builtin that does so."""
    match node:
        case gast.Call(func=gast.Name(id=name), args=[gast.GeneratorExp() as generator]) if name in CONSUMERS:
            return [generator]
    return []


def load(name: str, like: Any = None) -> Any:
    """A Name node that reads `name`, placed where the node `like` stands."""
    node = gast.Name(name, gast.Load(), None, None)
    return node if like is None else gast.copy_location(node, like)


def store(name: str) -> Any:
    """A Name node that assigns `name`."""
    return gast.Name(name, gast.Store(), None, None)


def constant(value: object) -> Any:
    """A Constant node."""
    return gast.Constant(value, None)


def call(function: str, *arguments: Any) -> Any:
    """A Call node of the plain name `function`, placed at its first argument."""
    return gast.copy_location(gast.Call(load(function), list(arguments), []), arguments[0])


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
    """The expressions directly inside an expression, in the order in which Python evaluates them."""
    if isinstance(node, gast.Dict):
        return [part for pair in zip(node.keys, node.values, strict=True) for part in pair if part is not None]
    found: list[Any] = []
    for _, value in gast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        found += [part for part in parts if isinstance(part, gast.expr | gast.keyword | gast.Slice)]
    return found


def walk(node: Any) -> Iterator[Any]:
    """`node` and everything inside it, outermost and leftmost first."""
    yield node
    for child in gast.iter_child_nodes(node):
        yield from walk(child)


def walk_scope(node: Any) -> Iterator[Any]:
    """`node` and everything inside it that belongs to the same scope, outermost and leftmost first."""
    yield node
    is_scope = isinstance(node, (gast.FunctionDef, *INNER_SCOPES))
    for child in evaluated_around(node) if is_scope else gast.iter_child_nodes(node):
        yield from walk_scope(child)


def evaluated_around(scope: Any) -> list[Any]:
    """What of a function or a comprehension is evaluated around it: defaults, what a comprehension goes over first."""
    if isinstance(scope, gast.Lambda | gast.FunctionDef):
        return [*scope.args.defaults, *(each for each in scope.args.kw_defaults if each is not None)]
    return [scope.generators[0].iter]


def target_leaves(target: Any) -> list[Any]:
    """The names and elements that a target assigns, from left to right."""
    if isinstance(target, gast.Tuple | gast.List):
        return [leaf for part in target.elts for leaf in target_leaves(part)]
    return [target]


def literal(node: Any) -> int | None:
    """The value of an integer literal, which may have a sign; None for everything else."""
    match node:
        case gast.Constant(value=int(value)) if not isinstance(value, bool):
            return int(value)
        case gast.UnaryOp(op=gast.USub(), operand=gast.Constant(value=int(value))) if not isinstance(value, bool):
            return -int(value)
    return None


def names_in(node: Any) -> frozenset[str]:
    """Every name inside `node`, whatever its scope."""
    every = list(walk(node))
    return frozenset(each.id for each in every if isinstance(each, gast.Name)) | {
        each.name for each in every if _captures(each) or isinstance(each, gast.FunctionDef)
    }


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
