"""Methods: a batched function in a class, bound to the object (or the class) that it is read from.

The object is static, no argument of the program. What is compiled for it is kept with it: in its `__dict__`, as
`functools.cached_property` does, so that it lives as long as the object and no longer. Objects without one, such as
classes and those with slots, are remembered by the function, the latest few.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

KEY = "_pcbatch_methods"
"""The entry of an object's `__dict__` that holds its bound functions."""
REMEMBERED = 16
"""Number of bound functions kept for objects without a `__dict__`."""


class Bound(Generic[T]):
    """The bound functions of one object; a copy of the object, or a pickled one, begins with none."""

    def __init__(self, owner: Any = None):
        self.owner = owner
        self.functions: dict[T, T] = {}

    def __reduce__(self) -> Any:
        return Bound, ()


class Binder(Generic[T]):
    """Gives a batched function, bound to an object, the same one for the same object each time."""

    def __init__(self, make: Callable[[Any], T]):
        self._make = make
        self._latest: list[tuple[Any, T]] = []

    def bind(self, function: T, owner: Any) -> T:
        """`function` bound to `owner`."""
        namespace = getattr(owner, "__dict__", None)
        if not isinstance(namespace, dict):
            return self._remembered(owner)
        kept = namespace.get(KEY)
        if kept is None or kept.owner is not owner:
            kept = namespace[KEY] = Bound(owner)
        if function not in kept.functions:
            kept.functions[function] = self._make(owner)
        return kept.functions[function]

    def _remembered(self, owner: Any) -> T:
        for known, bound in self._latest:
            if known is owner:
                return bound
        bound = self._make(owner)
        self._latest = [(owner, bound), *self._latest[: REMEMBERED - 1]]
        return bound


def plain_function(function: Any) -> types.FunctionType:
    """The Python function behind a bound method, a static method, a class method or itself."""
    while isinstance(function, types.MethodType | staticmethod | classmethod):
        function = function.__func__
    return function


def is_defined_in_class(function: Any) -> bool:
    """Return whether a plain function stands in the body of a class, so that it will be bound to objects."""
    if not isinstance(function, types.FunctionType | classmethod):
        return False
    parent = plain_function(function).__qualname__.rpartition(".")[0]
    return bool(parent) and not parent.endswith("<locals>")
