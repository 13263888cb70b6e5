"""A batched function in a pickle by value, for processes in which its name means nothing.

Functions of `__main__` have names that only the process knows that runs the program: the workers of Dask or joblib have
a `__main__` of their own. So cloudpickle, which these use, pickles plain functions of `__main__` by value, and all else
as it says itself. A batched function says: by its name, and by a plain function (`made`) that whoever pickles by name
finds as an attribute of the one of that name, while cloudpickle takes it apart. Of this `arrived` makes a batched one.

The plain function may lead back to the batched one, by its names; then that is wanted before the function is complete.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, TypeVar

ATTRIBUTE = "carried_function"
"""The attribute of a batched function that is found by name."""
TEXT = "__pcbatch_text__"
"""The attribute of a plain function that is complete: what it was wrapped in, its file, and the lines of that."""
B = TypeVar("B")


def is_by_value(function: FunctionType, module: str) -> bool:
    """Return whether a pickler may take the functions of `module` apart, as cloudpickle does."""
    cloudpickle = sys.modules.get("cloudpickle")
    registered = cloudpickle.list_registry_pickle_by_value() if cloudpickle is not None else ()
    return (
        module == "__main__"
        or made_of(function) is not None
        or any(f"{module}.".startswith(f"{each}.") for each in registered)
    )


def made(function: FunctionType, module: str, wrapped: Any) -> FunctionType:
    """A copy of a function for a pickle; `wrapped` is the object that `autobatch` was given, perhaps a staticmethod."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__module__ = function.__kwdefaults__, module
    kind = type(wrapped).__name__ if isinstance(wrapped, (classmethod, staticmethod)) else ""
    file = function.__code__.co_filename
    setattr(copy, TEXT, (kind, file, linecache.getlines(file, function.__globals__)))
    return copy


def named(function: FunctionType, name: str) -> FunctionType:
    """The copy that `made` returned, under the qualified name of its batched function."""
    function.__qualname__ = f"{name}.{ATTRIBUTE}"
    return function


Complete = Callable[[Any, Any], None]
"""Fills in a blank object, from the plain function or from the static or class method around it."""
_PENDING = "__pcbatch_pending__"


def arrived(function: FunctionType, key: str, blank: B, complete: Complete) -> B:
    """The object made of a plain function that has arrived: one for each `key`, at first the `blank` one.

    `complete` fills it in as soon as the function is complete.
    """
    pending: dict[str, tuple[Any, Complete | None]] = vars(function).setdefault(_PENDING, {})
    found, _ = pending.setdefault(key, (blank, complete))
    if hasattr(function, TEXT):
        kind, file, lines = getattr(function, TEXT)
        function.__qualname__ = function.__qualname__.removesuffix(f".{ATTRIBUTE}")
        _place(function, file, lines)
        wrapped: Any = _KINDS[kind](function)
        for each, (one, todo) in [*pending.items()]:
            pending[each] = one, None
            if todo is not None:
                todo(one, wrapped)
    result: B = found
    return result


def made_of(function: FunctionType) -> Any:
    """The batched function that was made of a plain one that has arrived here; None of any other."""
    return vars(function).get(_PENDING, {}).get("", (None, None))[0]


def _place(function: FunctionType, file: str, lines: Sequence[str]) -> None:
    """Let the code of a function, and of those around it that stand in the same file, be of that file again."""
    if linecache.getlines(file) != lines:
        linecache.cache[file] = (sum(map(len, lines)), None, list(lines), file)
    lost = function.__code__.co_filename  # cloudpickle gives all code one name
    for each in (function, *function.__globals__.values()):
        if isinstance(each, FunctionType) and each.__code__.co_filename == lost != file:
            first = each.__code__.co_firstlineno - 1
            if any(each.__name__ in line or "lambda" in line for line in lines[first : first + DECORATORS]):
                each.__code__ = _of_file(each.__code__, file)


DECORATORS = 20
"""Number of lines, from a function's first one, among which its name stands, behind its decorators."""


def _of_file(code: CodeType, file: str) -> CodeType:
    inside = (_of_file(each, file) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inside))


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "": lambda function: function,
    "classmethod": classmethod,
    "staticmethod": staticmethod,
}
