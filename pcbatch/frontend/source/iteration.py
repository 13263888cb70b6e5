"""The built-ins that a `for` loop understands: `range`, `enumerate`, `zip` and `reversed`; which loops there are."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeGuard

import gast

from pcbatch.errors import Span
from pcbatch.syntax import parse

WRAPPERS = ("enumerate", "zip", "reversed")


def range_arguments(node: Any, is_builtin: Callable[[str], bool]) -> tuple[list[Any], bool] | None:
    """The arguments of `range(..)` and False, those of the range in `reversed(range(a, b))` and True, else None.

    A range with a step is reversed as any other sequence is.
    """
    match node:
        case gast.Call(func=gast.Name(id="range"), args=arguments) if is_builtin("range"):
            return arguments, False
        case gast.Call(func=gast.Name(id="reversed"), args=[inner], keywords=[]) if is_builtin("reversed"):
            found = range_arguments(inner, is_builtin)
            return (found[0], True) if found is not None and not found[1] and len(found[0]) < 3 else None
    return None


def wrapper(node: Any, is_builtin: Callable[[str], bool]) -> str | None:
    """The name of the built-in, one of WRAPPERS, that `node` calls, or None."""
    match node:
        case gast.Call(func=gast.Name(id=name)) if name in WRAPPERS and is_builtin(name):
            return str(name)
    return None


_KEYWORDS = {"sum": ("start",), "min": ("default", "key"), "max": ("default", "key")}


def reduced(node: Any, is_builtin: Callable[[str], bool]) -> Any:
    """The comprehension of which the call `node` makes one value; None where it is no such call.

    `max(xs, key=f)` is one of all elements, `x for x in xs`.
    """
    match node:
        case gast.Call(func=gast.Name(id="min" | "max" as name), args=[gast.expr() as whole], keywords=keywords) if (
            is_builtin(name) and key_of(node) is not None and not isinstance(whole, gast.GeneratorExp | gast.ListComp)
        ):
            if any(each.arg not in _KEYWORDS[name] for each in keywords):
                return None
            names = gast.Name("_pcb_each", gast.Store(), None, None), gast.Name("_pcb_each", gast.Load(), None, None)
            target, element = (gast.copy_location(each, whole) for each in names)
            generator = gast.comprehension(target, whole, [], 0)
            return gast.copy_location(gast.GeneratorExp(element, [generator]), node)
        case gast.Call(func=gast.Name(id=name), args=[gast.GeneratorExp() | gast.ListComp() as given, *more]):
            if not is_builtin(name) or any(each.arg not in _KEYWORDS.get(name, ()) for each in node.keywords):
                return None
            if name in ("any", "all", "min", "max", "sum") and len(more) <= (name == "sum"):
                return given
            return given if name == "len" and not more and isinstance(given, gast.ListComp) else None
    return None


def key_of(node: Any) -> Any:
    """The `key=..` of a call, or None."""
    return next((each.value for each in node.keywords if each.arg == "key"), None)


def loops_around(span: Span) -> int:
    """How many `for` loops have a place of the user's source in their headers or bodies; a comprehension counts twice.

    That can become a loop, and then be written out.
    """
    text = _text(span.file)
    loops = sum(first <= span.line <= span.end_line <= last for first, last in _loops(text))
    return loops + 2 * any(are_nested(span, each) for each in _comprehensions(text))


Place = tuple[int, int, int, int]
"""The first line and column of something, and those behind it."""


def are_nested(span: Span, place: Place) -> bool:
    """Whether one of two places is inside the other."""
    first, last = (span.line, span.column), (span.end_line, span.end_column)
    start, end = place[:2], place[2:]
    return (start <= first and last <= end) or (first <= start and end <= last)


def _text(file: str) -> str:
    return "".join(linecache.getlines(file))


@lru_cache(maxsize=64)
def _loops(text: str) -> tuple[tuple[int, int], ...]:
    """The first and the last lines of all `for` loops, without their `else`."""
    try:
        tree = parse(text)
    except SyntaxError:  # a file that has changed
        return ()
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.For))
    return tuple((node.lineno, node.body[-1].end_lineno or 0) for node in loops)


def _has_key(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether `node` is a `max(.., key=..)`, which is a loop, too."""
    return isinstance(node, ast.Call) and any(each.arg == "key" for each in node.keywords)


@lru_cache(maxsize=64)
def _comprehensions(text: str) -> tuple[Place, ...]:
    try:
        tree = parse(text)
    except SyntaxError:
        return ()
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ListComp | ast.GeneratorExp) or _has_key(node))
    return tuple((n.lineno, n.col_offset, n.end_lineno or 0, n.end_col_offset or 0) for n in nodes)
