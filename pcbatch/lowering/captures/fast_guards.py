"""Places that each call looks up anew, most of which have not changed: compared by one loop that calls no Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pcbatch.lowering.captures.guarded_paths import MISSING

Glanced = tuple[Callable[[Any, Any], Any], Any, Any]
"""`(get, key, value)`: `get(key, MISSING)` was `value`."""


class FastGuards:
    """The very same values in some places."""

    def __init__(self, places: Iterable[Glanced] = ()):
        self._places = tuple(places)

    def is_same(self) -> bool:
        """Return whether all are; False also where one cannot be looked up."""
        try:
            for get, key, value in self._places:
                if get(key, MISSING) is not value:
                    return False
        except Exception:  # a cell that is empty now, or whatever a class of the user's raises
            return False
        return True
