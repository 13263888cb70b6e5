"""What changes no result: `pcbatch.sync()` and `@pcbatch.cost(..)`, about the schedule, and `pcbatch.debug(..)`.

`pcbatch.function.hints` has them as a user calls them.
"""

from __future__ import annotations

import math
from collections.abc import Set
from string import Formatter
from typing import Any

import gast

from pcbatch.frontend.source.nodes import dotted
from pcbatch.frontend.source.scope import Scope

SYNC = ("pcbatch.sync", "pcbatch.function.hints.sync")
DEBUG = ("pcbatch.debug", "pcbatch.function.hints.debug")
COST = ("pcbatch.cost", "pcbatch.function.hints.cost")
COST_ATTRIBUTE = "__pcbatch_cost__"
"""Where `pcbatch.cost` notes its number on a plain function, for `read_function`."""


def is_text(node: Any, values: int) -> bool:
    """Whether `node` is a text that `pcbatch.debug` can show so many values in: with a field for each, or none."""
    is_text = isinstance(node, gast.Constant) and isinstance(node.value, str)
    return is_text and is_text_for(node.value, values)


def is_text_for(text: str, values: int) -> bool:
    """Whether a text has a field for each of so many values, or none."""
    try:
        fields = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError:
        return False
    return not any(fields) and len(fields) in (0, values)


def calls(node: Any, local_names: Set[str], scope: Scope, paths: tuple[str, ...]) -> bool:
    """Whether the Call `node` calls what is known by one of these paths."""
    path = dotted(node.func)
    root, _, rest = (path or "").partition(".")
    origin = None if path is None or root in local_names else scope.origin(root)
    return origin is not None and (f"{origin.path}.{rest}" if rest else origin.path) in paths


def is_cost(value: Any) -> bool:
    """Whether a row can cost `value`: a positive finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
