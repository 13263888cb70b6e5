"""Names that each call looks up anew, most of which are what they were: compared by one loop that calls no Python."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pcbatch.lowering.captures.captured import Namespace

MISSING: Any = object()
"""What a name is that is bound to nothing."""

Place = tuple[Callable[[Any, Any], Any], Any, Any]
"""`(get, key, value)`: `get(key, MISSING)` was `value`."""


class Glance:
    """Whether names denote the very same as before."""

    def __init__(self, places: Iterable[Place] = ()):
        self._places = tuple({(get, key): (get, key, value) for get, key, value in places}.values())

    def is_same(self) -> bool:
        """Whether all do; False also where one cannot be looked up."""
        try:
            for get, key, value in self._places:
                if get(key, MISSING) is not value:
                    return False
        except ValueError:  # a cell that is empty now
            return False
        return True


def places(namespace: Namespace, names: Sequence[str]) -> list[Place]:
    """Where a name is found, and attributes of modules after it; the last place has the value of all.

    None at all where that cannot be told at a glance, without running code of the user's. All of it is held as long as
    the places are.
    """
    root, *attributes = names
    found: list[Place] = []
    last = MISSING
    for get, key in namespace.sources(root):
        if last is not MISSING:
            return []
        try:
            last = get(key, MISSING)
        except ValueError:
            return []
        found.append((get, key, last))
    for attribute in attributes:
        if type(last) is not types.ModuleType or attribute not in vars(last):
            return []
        get = vars(last).get
        last = get(attribute, MISSING)
        found.append((get, attribute, last))
    return found
