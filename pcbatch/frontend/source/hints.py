"""Hints, which change no result: `pcbatch.sync()` and `@pcbatch.cost(..)`, about the schedule, and `pcbatch.debug(..)`.

`pcbatch.function.hints` has them as a user calls them.
"""

from __future__ import annotations

import math
from string import Formatter
from typing import Any

COST = ("pcbatch.cost", "pcbatch.function.hints.cost")
COST_ATTRIBUTE = "__pcbatch_cost__"
"""Attribute of a plain function in which `pcbatch.cost` notes its number, for `read_function`."""


def is_text_for(text: str, values: int) -> bool:
    """Return whether a text has a field for each of so many values, or none."""
    try:
        fields = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError:
        return False
    return not any(fields) and len(fields) in (0, values)


def is_cost(value: Any) -> bool:
    """Return whether a row can cost `value`: a positive finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
