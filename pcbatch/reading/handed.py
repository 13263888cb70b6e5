"""Objects that operations get and give: are they changed or returned, and do they lead to values of a lane's?"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

from pcbatch.errors import PieceRefusalError
from pcbatch.ir.values import fields_of
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


KNOWN = (str, bytes, int, float, complex, type, NoneType, CodeType, ModuleType, BuiltinFunctionType)
"""Classes of objects that lead to nothing of a lane's."""
NEAR, FAR = 3, 8
"""So far from an object, and from a function, an operation may have put a lane's value."""
MOST_SEEN = 10_000
FUNCTION = (
    "PCB404",
    "a function that is made of a lane's values stands where a lane has a number",
    "call it, or make it again where it is used: lanes keep numbers, arrays, and structures of them",
)
"""The refusal of a function that leads to a lane's values, where a variable would have to hold it."""


def is_function(value: Any) -> bool:
    """Tell whether an object is there to be called."""
    return callable(value) and not isinstance(value, type)


def leads(value: Any, is_lane: Callable[[Any], bool]) -> bool:
    """Tell whether an object refers to values that stand for a lane's."""
    seen: set[int] = set()
    row = [value]
    for _ in range(1 + (FAR if is_function(value) else NEAR)):
        new = {id(each): each for each in row if not isinstance(each, KNOWN) and id(each) not in seen}
        if any(map(is_lane, new.values())):
            return True
        if len(seen) > MOST_SEEN:
            return False
        seen |= new.keys()
        row = [each for one in new.values() for each in _referents(one)]
    return False


def _referents(value: Any) -> list[Any]:
    """The objects to which one refers; a function refers to what is in its module by name only."""
    found = gc.get_referents(value)
    return [each for each in found if each is not value.__globals__] if isinstance(value, FunctionType) else found
