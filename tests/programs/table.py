"""A table of programs with their arguments, filled by a decorator: what the modules in `tests/programs/cases/` have."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MODULES = (
    *("order", "shared", "attributes", "operators", "helpers", "functions", "names", "elements", "rows"),
    *("classes", "mixtures", "sequences", "unequal", "loops", "calls", "layouts"),
)
"""The modules of `tests/programs/cases/`."""

A = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [-1.0, 0.0, 2.0, 9.0]], np.float32)
B = A[::-1].copy()
M = np.arange(27, dtype=np.float32).reshape(3, 3, 3)
N = np.array([[3, 1, 2, 0], [0, 1, 2, 3], [2, 2, 2, 1]], np.int32)
X = np.array([10.0, -20.0, 30.0], np.float32)
K = np.array([0, 1, 2], np.int32)
COUNTS = np.array([0, 1, 3, 7, 12], np.int32)
NUMBERS = np.array([1.0, -2.0, 3.0, 0.5, 9.0], np.float32)
OUTSIDE = np.array([-5, 3, 4], np.int32)
BYTES = N.astype(np.int8)
HUNDREDS = np.array([100, 200, 300], np.int32)
"""Arguments, with a leading axis of lanes."""


@dataclass(frozen=True)
class Case:
    """A program, its arguments, and what judges it: the program itself, or a twin where it calls batched functions."""

    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]
    twin: Callable[..., Any]


class Table(list[Case]):
    """The programs of a module; `@table(A, X)` above a function enters it."""

    def __call__(self, *arguments: np.ndarray, twin: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self.append(Case(function, arguments, twin or function))
            return function

        return enter


def cases() -> dict[str, Case]:
    """All cases, by module and name."""
    tables = {module: importlib.import_module(f"tests.programs.cases.{module}").program for module in MODULES}
    return {f"{module}.{case.function.__name__}": case for module, table in tables.items() for case in table}
