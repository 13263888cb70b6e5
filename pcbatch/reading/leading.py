"""Objects that operations give: whether they lead to values that stand for a lane's."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

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
