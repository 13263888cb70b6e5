"""Python's text as trees, in several threads."""

from __future__ import annotations

import ast
import threading
from typing import Any

_turn = threading.Lock()


def parse(text: str | bytes, **options: Any) -> Any:
    """`ast.parse`, one thread at a time.

    Python 3.11 counts the depth of the tree in the making for all threads together, and raises "SystemError: AST
    constructor recursion depth mismatch" where two make trees at the same time.
    """
    with _turn:
        return ast.parse(text, **options)
