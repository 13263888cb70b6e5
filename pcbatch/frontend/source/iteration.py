"""The built-ins that a `for` loop understands: `range`, `enumerate`, `zip` and `reversed`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gast

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
