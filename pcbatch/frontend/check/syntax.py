"""The syntax check: constructs that the reader cannot read, whatever values there are, found in a function's tree.

A batched function with one of them is refused when it is decorated; a helper with one of them is not interpreted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

import gast

from pcbatch.errors import Diagnostic, raise_all
from pcbatch.frontend.check import refusals
from pcbatch.frontend.source.nodes import assigned_in, children, parameters, span_of
from pcbatch.frontend.source.parsing import PYTHON_2, Refusal
from pcbatch.frontend.source.scope import Scope
from pcbatch.frontend.source.source import FunctionSource, from_tree
from pcbatch.frontend.source.source_capture import capture


def _same(refusal: Refusal, *names: str) -> dict[str, Refusal]:
    return dict.fromkeys(names, refusal)


_REFUSED: dict[str, Refusal] = {
    **_same(refusals.TRY, "Try", "TryStar"),
    "ClassDef": refusals.CLASS,
    **_same(refusals.ASYNC, "AsyncFunctionDef", "AsyncFor", "AsyncWith", "Await"),
    "Global": refusals.SCOPE,
    **_same(refusals.TYPES, "TypeAlias", "TypeVar", "TypeVarTuple", "ParamSpec"),
    **_same(refusals.TEMPLATE, "TemplateStr", "Interpolation"),
    **_same(PYTHON_2, "Print", "Exec", "Repr"),
}
REFUSED: dict[type, Refusal] = {getattr(gast, name): each for name, each in _REFUSED.items() if hasattr(gast, name)}
"""The constructs refused by their node type alone."""


def check_syntax(tree: Any, file: str) -> list[Diagnostic]:
    """Every construct in the batched function `tree` that cannot be read."""
    found = [*_suspensions(tree), *unreadable(tree)]
    found.sort(key=lambda each: (each[0].lineno, each[0].col_offset))
    return [refusal.at(span_of(node, file)) for node, refusal in found]


def _suspensions(tree: Any) -> Iterator[tuple[Any, Refusal]]:
    """Yield the places where a batched function suspends itself: only generators that it iterates over may do that."""
    return ((each, refusals.GENERATOR) for each in _inside(tree) if isinstance(each, gast.Yield | gast.YieldFrom))


def unreadable(tree: Any) -> Iterator[tuple[Any, Refusal]]:
    """The constructs in a function or a lambda that cannot be read, functions inside of it included."""
    return _in_scope(tree, frozenset())


def _in_scope(tree: Any, around: frozenset[str]) -> Iterator[tuple[Any, Refusal]]:
    """Yield refusals as `unreadable`; the functions `around` have variables of these names."""
    if type(tree) in REFUSED:
        yield tree, REFUSED[type(tree)]
    nodes = _inside(tree)
    has_functions = any(isinstance(each, gast.FunctionDef | gast.AsyncFunctionDef) for each in nodes)
    own = _variables(tree, nodes) if has_functions else frozenset()
    for node in nodes:
        match node:
            case gast.FunctionDef(decorator_list=decorators):
                yield from ((decorator, refusals.DECORATED) for decorator in decorators)
                yield from _in_scope(node, around | own)
            case gast.AsyncFunctionDef():
                yield from _in_scope(node, around | own)
            case gast.Nonlocal(names=names) if not around.issuperset(names):
                yield node, refusals.SCOPE
            case gast.comprehension(is_async=is_async, target=target) if is_async:
                yield target, refusals.ASYNC
            case _ if type(node) in REFUSED:
                yield node, REFUSED[type(node)]


def _variables(tree: Any, nodes: Sequence[Any]) -> frozenset[str]:
    """The variables of a function, with these nodes, that functions inside of it may declare `nonlocal`."""
    body = tree.body if isinstance(tree.body, list) else []
    functions = {each.name for each in nodes if isinstance(each, gast.FunctionDef)}
    declared = {name for each in nodes if isinstance(each, gast.Nonlocal) for name in each.names}
    return frozenset(({each.id for each in parameters(tree.args)} | assigned_in(body) | functions) - declared)


def _inside(tree: Any) -> list[Any]:
    """The nodes inside of a function, in order, without those of functions and classes inside of it."""
    waiting = children(tree)[::-1]
    found = []
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, gast.FunctionDef | gast.AsyncFunctionDef | gast.ClassDef):
            waiting += reversed(children(node))
    return found


def read_function(function: Any) -> FunctionSource:
    """Capture the source of a live Python function or bound method and check its syntax.

    Raises UnsupportedSyntaxError with everything in it that pcbatch does not translate, or with the reason why there is
    no source to be had.
    """
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        return read_function(function.__func__).bound()
    if isinstance(function, staticmethod | classmethod):
        return read_function(function.__func__)
    return _checked(capture(function))


def read_definition(
    node: ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], file: str, qualname: str, scope: Scope
) -> FunctionSource:
    """The source of a parsed definition; raises UnsupportedSyntaxError with every refusal in it."""
    return _checked(from_tree(node, lines, file, qualname, scope))


def _checked(source: FunctionSource) -> FunctionSource:
    raise_all(check_syntax(source.tree, source.file))
    return source
