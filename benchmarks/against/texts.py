"""The tasks' text, compiled by whoever runs it: pcbatch, Numba, or nobody at all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

FILES = ("tasks", "recursions")
FLOATS = ("bisection", "rk45", "simpson", "quicksort")
"""The tasks that give float64; the others give int32."""
WRITTEN = {"edit_distance": (4,), "quicksort": (0,)}
"""The arguments that a task writes into, by place: whoever calls it in a loop has to copy these."""


def compiled_by(task: Callable[..., Any]) -> dict[str, Any]:
    """The tasks by name, each compiled by `task`."""
    found: dict[str, Any] = {}
    for name in FILES:
        path = Path(__file__).with_name(f"{name}.py")
        module = ModuleType(f"{__package__}.{name}_compiled")
        sys.modules[module.__name__] = module  # Numba finds the functions that a function calls by its module's name
        vars(module).update(task=task)
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
        found.update(vars(module))
    return found | dict.fromkeys(("depth_10", "depth_100", "depth_1000"), found["total"])


def result_type(task: str) -> type[np.generic]:
    """The dtype of a task's results."""
    return np.float64 if task in FLOATS else np.int32
