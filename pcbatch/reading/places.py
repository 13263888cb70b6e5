"""Where values of the world around a function were read: what a later call reads again, and compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["cell", "global", "attribute", "item", "default", "held"]


class GoneError(Exception):
    """There is nothing at a place any more."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where a value was read: a closure's cell, a global of a module, an attribute or an item of another object."""

    kind: Kind
    holder: Any
    key: Any
    text: str = field(default="", repr=False)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells the place from all others as long as its holder lives."""
        key = self.key if isinstance(self.key, str | int) else repr(self.key)
        return self.kind, id(self.holder), key

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
                case "item":
                    return self.holder[self.key]
                case "default":
                    return _default(self.holder, self.key)
        except (AttributeError, KeyError, IndexError, ValueError, TypeError) as error:
            raise GoneError from error
        raise GoneError


def _global(names: Mapping[str, Any], key: str) -> Any:
    if key in names:
        return names[key]
    builtins = names["__builtins__"]
    return (builtins if isinstance(builtins, dict) else vars(builtins))[key]


def _default(function: Any, key: int | str) -> Any:
    return function.__defaults__[key] if isinstance(key, int) else function.__kwdefaults__[key]
