"""`heapq` and `bisect` for one example: their functions in C ask for a list, which a bounded list is not."""

from __future__ import annotations

import bisect
import functools
import heapq
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pcbatch.single.helpers import Bounded

MODULES = frozenset({"heapq", "bisect"})


def _in_python(name: str, in_c: str) -> ModuleType:
    """A module of Python's library without the functions that it has in C."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(in_c)
    sys.modules[in_c] = None  # type: ignore[assignment]
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[in_c]
        if before is not None:
            sys.modules[in_c] = before
    return module


_HEAPS, _BISECTIONS = _in_python("heapq", "_heapq"), _in_python("bisect", "_bisect")


def _either(function: Callable[..., Any], of_bounded: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does `of_bounded` to bounded lists."""

    @functools.wraps(function)
    def called(whole: Any, *given: Any, **named: Any) -> Any:
        return (of_bounded if isinstance(whole, Bounded) else function)(whole, *given, **named)

    return called


_HEAPING = ("heappush", "heappop", "heapify", "heapreplace", "heappushpop")
SPECIAL: dict[Any, Callable[..., Any]] = {
    **{getattr(heapq, name): _either(getattr(heapq, name), getattr(_HEAPS, name)) for name in _HEAPING},
    bisect.insort_left: _either(bisect.insort_left, _BISECTIONS.insort_left),
    bisect.insort_right: _either(bisect.insort_right, _BISECTIONS.insort_right),
}
"""Replacements of the two modules' functions."""
