"""The built-ins that a `for` loop understands: `range`, `enumerate`, `zip` and `reversed`; which loops there are."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import gast

from pcbatch.errors import Span

WRAPPERS = ("enumerate", "zip", "reversed")


def range_arguments(node: Any, is_builtin: Callable[[str], bool]) -> tuple[list[Any], bool] | None:
    """The arguments of `range(..)` and False, those of the range in `reversed(range(..))` and True, else None."""
    match node:
        case gast.Call(func=gast.Name(id="range"), args=arguments) if is_builtin("range"):
            return arguments, False
        case gast.Call(func=gast.Name(id="reversed"), args=[inner], keywords=[]) if is_builtin("reversed"):
            found = range_arguments(inner, is_builtin)
            return (found[0], True) if found is not None and not found[1] else None
    return None


def wrapper(node: Any, is_builtin: Callable[[str], bool]) -> str | None:
    """The name of the built-in, one of WRAPPERS, that `node` calls, or None."""
    match node:
        case gast.Call(func=gast.Name(id=name)) if name in WRAPPERS and is_builtin(name):
            return str(name)
    return None


def loops_around(span: Span) -> int:
    """How many `for` loops have a place of the user's source in their headers or bodies."""
    return sum(first <= span.line <= span.end_line <= last for first, last in _loops(_text(span.file)))


def _text(file: str) -> str:
    return "".join(linecache.getlines(file))


@lru_cache(maxsize=64)
def _loops(text: str) -> tuple[tuple[int, int], ...]:
    """The first and the last lines of all `for` loops, without their `else`."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a file that has changed
        return ()
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.For))
    return tuple((node.lineno, node.body[-1].end_lineno or 0) for node in loops)
