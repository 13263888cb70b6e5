"""The array libraries on which the machine's own tests run: NumPy in every mode, TensorFlow in some that cover them.

What is the machine's is the same in both, and NumPy needs no compiler: so it takes the whole matrix of schedules, kinds
of storage and limits. Nothing here imports TensorFlow before a test asks for it.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pcbatch.optimize.machine.compaction import Compaction
from pcbatch.runtime.backends import backend_named
from pcbatch.runtime.backends.protocol import Backend
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.outcome import Outcome
from tests.runtime.numpy_backend.backend import numpy_backend
from tests.schedules import GATHERING, RANDOM

SCHEDULES = ("earliest", "busiest", "sweep", "adaptive", GATHERING, RANDOM)
STORAGES = ("cached stack", "stack")
MATRIX = tuple(itertools.product(SCHEDULES, (True, False), STORAGES))
"""Schedule, whether operations may raise for lanes that take no part (`jit` says that they do not), and storage."""
MODES = tuple(itertools.product(SCHEDULES, (True, False)))
"""The same without storage."""
COVERING = (
    ("earliest", True, "cached stack"),
    ("sweep", True, "stack"),
    ("earliest", False, "stack"),
    ("sweep", False, "cached stack"),
)
"""Every two of schedule, compilation and storage together."""
FEW = (("sweep", True, "stack"), ("earliest", False, "cached stack"))
"""Each of schedule, compilation and storage, both ways."""
COVERING_MODES = (("earliest", True), ("sweep", False))
EVERY_BLOCK = Compaction(every=True, rows=3)
"""Every block is expensive: it runs on 3 rows at a time, at 17 lanes up to 10 of them, else for all."""


@dataclass(frozen=True)
class Library:
    """An array library: its backend, and for pieces its checked operations and the inverse of a matrix."""

    name: str
    backend: Backend
    ops: ModuleType
    inverse: Callable[[Any], Any]

    def run(self, program: Any, *arguments: Any, shared: Any = (), lanes: int | None = None, **options: Any) -> Outcome:
        """Run a fresh machine."""
        lanes = len(arguments[0]) if lanes is None else lanes
        return Machine(program, self.backend, **options).run(arguments, shared, lanes)


@cache
def library_named(name: str) -> Library:
    """The library, imported when it is first asked for."""
    backend = numpy_backend() if name == "numpy" else backend_named(name)
    ops = importlib.import_module(backend.ops_module)
    return Library(name, backend, ops, importlib.import_module(name).linalg.inv)


def on_both(names: str, numpy: Iterable[Any], tensorflow: Iterable[Any]) -> pytest.MarkDecorator:
    """Give a test a `library` and the arguments `names`: for each library the cases that are its own."""
    by_library = [("numpy", case) for case in numpy] + [("tensorflow", case) for case in tensorflow]
    cases = [(library, *(case if isinstance(case, tuple) else (case,))) for library, case in by_library]
    ids = ["-".join(map(str, case)) for case in cases]
    return pytest.mark.parametrize(f"library, {names}", cases, indirect=["library"], ids=ids)


ON_BOTH = pytest.mark.parametrize("library", ["numpy", "tensorflow"], indirect=True)


def ints(*numbers: int) -> np.ndarray:
    """An int32 vector."""
    return np.array(numbers, np.int32)
