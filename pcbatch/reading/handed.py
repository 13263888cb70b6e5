"""Effects of a function that is not interpreted on objects and arrays: does it change or return them?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pcbatch.errors import PieceRefusalError
from pcbatch.ir.records import fields_of
from pcbatch.reading.values import Function, Host, Lane, OneOf, Ref, Tuple, Value, View


class Handed:
    """The objects and arrays of one call.

    `who` makes it, for messages. `parts_of` gives the parts of a list, a dict or an object of the program, and what a
    function of it reads.
    """

    def __init__(self, who: str, parts_of: Callable[[Ref | Function], dict[Any, Value]]):
        self._who, self._parts_of = who, parts_of
        self._values: dict[int, Value] = {}
        self._before: list[tuple[Any, list[Any]]] = []

    def note(self, value: Value, given: Any) -> None:
        """Note that `given` stands for `value` while the call is tried."""
        match value:
            case Tuple(items):
                for item, part in zip(items, given, strict=False):
                    self.note(item, part)
            case Function():
                self._values[id(given)] = value
                cells = getattr(given, "__closure__", None) or ()
                read = dict(zip(given.__code__.co_freevars, cells, strict=True)) if cells else {}
                for name, item in self._parts_of(value).items():
                    if name in read:
                        self.note(item, read[name].cell_contents)
            case Ref():
                parts = _parts(given)
                self._values[id(given)] = value
                self._before.append((given, [] if parts is None else [*parts.items()]))
                for key, item in self._parts_of(value).items():
                    if parts is not None and key in parts:
                        self.note(item, parts[key])
            case Lane() | View() | OneOf() | Host():
                self._values[id(given)] = value
                parts = _parts(given)
                self._before.append((given, [] if parts is None else [*parts.items()]))

    def same_as(self, result: Any) -> Value | None:
        """The value that was handed in, where the result is that."""
        return self._values.get(id(result))

    def check(self) -> None:
        """Refuse a change of what was handed in."""
        for given, before in self._before:
            parts = _parts(given)
            now = [] if parts is None else [*parts.items()]
            is_same = len(now) == len(before) and all(
                a == b and one is other for (a, one), (b, other) in zip(now, before, strict=True)
            )
            if not is_same:
                raise PieceRefusalError(
                    "PCB424",
                    f"{self._who} changes what it is given, and cannot be read",
                    "let it return the new value: `xs = f(xs)`",
                )


def _parts(given: Any) -> dict[Any, Any] | None:
    """The parts of a list, a dict or an object; None of an array."""
    match given:
        case list():
            return dict(enumerate(given))
        case dict():
            return given.copy()
        case functools.partial(args=arguments):
            return dict(enumerate(arguments))
    fields = fields_of(given)
    return None if fields is None else dict(fields)
