"""The places around a function where values were read, for a later call to read again and compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any, Literal

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""The value of a place where there is nothing."""

Kind = Literal["cell", "global", "attribute", "class", "computed", "itself", "item", "part", "default", "held"]
"""The kind of a place. "class" is in a class and not in those that it inherits from, "part" an item of what is at
another place, "computed" the result of a function, "held" the result of a context manager, "itself" always there."""


class GoneError(Exception):
    """Raised if a place has no value any more."""


@dataclass(frozen=True, eq=False)
class Place:
    """The place of a value that was read: a closure's cell, a global, an attribute or an item of an object."""

    kind: Kind
    holder: Any
    key: Any
    text: str = field(default="", repr=False)

    @property
    def identity(self) -> tuple[Any, ...]:
        """A key that tells the place from all others as long as its holder lives."""
        key = self.key if isinstance(self.key, str | int) else repr(self.key)
        holder = self.holder.identity if isinstance(self.holder, Place) else id(self.holder)
        return self.kind, holder, key

    def item(self, key: Any) -> Place:
        """Return the place of an item of the value here."""
        return Place("part", self, key, f"{self.text}[{key!r}]")

    def read(self) -> Any:
        """The value that is there now; GoneError if there is none."""
        try:
            match self.kind:
                case "cell":
                    return self.holder.cell_contents
                case "global":
                    return _global(self.holder, self.key)
                case "attribute":
                    return getattr(self.holder, self.key)
                case "class":
                    return vars(self.holder)[self.key]
                case "computed":
                    return self.holder()
                case "itself":
                    return self.holder
                case "item":
                    return self.holder[self.key]
                case "part":
                    return self.holder.read()[self.key]
                case "default":
                    return _default(self.holder, self.key)
        except (AttributeError, KeyError, IndexError, ValueError, TypeError) as error:
            raise GoneError from error
        raise GoneError

    def at_a_glance(self) -> tuple[Callable[[Any, Any], Any], Any]:
        """A pair of `get` and `key`: `get(key, MISSING)` is the value that is there now.

        ValueError, or another error of Python's, where there is none.
        """
        match self.kind:
            case "cell":
                return partial(getattr, self.holder), "cell_contents"
            case "global" if self.key in self.holder:
                return self.holder.get, self.key
            case "attribute" if type(self.holder) is ModuleType:
                return vars(self.holder).get, self.key
            case "attribute":
                return partial(getattr, self.holder), self.key
            case "class":
                return vars(self.holder).get, self.key
            case "item" if type(self.holder) is dict:
                return self.holder.get, self.key
            case "part":
                get, key = self.holder.at_a_glance()
                return partial(_part, get, key, self.key), self.identity
        return self._read_or, self.identity

    def _read_or(self, key: Any, default: Any) -> Any:
        try:
            return self.read()
        except GoneError:
            return default


def _global(names: Mapping[str, Any], key: str) -> Any:
    if key in names:
        return names[key]
    builtins = names["__builtins__"]
    return (builtins if isinstance(builtins, dict) else vars(builtins))[key]


def _part(get: Callable[[Any, Any], Any], key: Any, part: Any, _: Any, default: Any) -> Any:
    return get(key, default)[part]


def _default(function: Any, key: int | str) -> Any:
    return function.__defaults__[key] if isinstance(key, int) else function.__kwdefaults__[key]
