"""What a program says about its own schedule, which changes no result: `pcbatch.sync()` and `@pcbatch.cost(..)`.

`pcbatch.function.hints` has the two as a user calls them.
"""

from __future__ import annotations

import math
from collections.abc import Set
from typing import Any

from pcbatch.frontend.source.nodes import dotted
from pcbatch.frontend.source.scope import Scope

SYNC = ("pcbatch.sync", "pcbatch.function.hints.sync")
COST = ("pcbatch.cost", "pcbatch.function.hints.cost")
COST_ATTRIBUTE = "__pcbatch_cost__"
"""Where `pcbatch.cost` notes its number on a plain function, for `read_function`."""


def is_sync(node: Any, local_names: Set[str], scope: Scope) -> bool:
    """Whether the Call `node` calls `pcbatch.sync`."""
    path = dotted(node.func)
    root, _, rest = (path or "").partition(".")
    origin = None if path is None or root in local_names else scope.origin(root)
    return origin is not None and (f"{origin.path}.{rest}" if rest else origin.path) in SYNC


def is_cost(value: Any) -> bool:
    """Whether a row can cost `value`: a positive finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
