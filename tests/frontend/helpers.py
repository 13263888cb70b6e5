"""Modules that use `pcbatch.autobatch` loaded without the rest of pcbatch."""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from pcbatch.frontend.module import read_module
from pcbatch.function.hints import COST_ATTRIBUTE, cost
from pcbatch.ir.program import Program
from pcbatch.reading.calls import BatchedFunction
from pcbatch.reading.sources import tree_of
from pcbatch.reading.static_module import read_file
from pcbatch.reading.untyped.program import UntypedProgram, read_untyped

FOLDER = Path(__file__).parent


def programs(folder: str) -> list[Path]:
    """The Python files of a folder of goldens."""
    return sorted((FOLDER / folder).glob("*.py"))


@dataclass(eq=False)
class Marked:
    """What the stand-in for `pcbatch.autobatch` gives: the function, which can also be called as it is."""

    function: FunctionType

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def __defaults__(self) -> Any:
        return self.function.__defaults__

    @property
    def __kwdefaults__(self) -> Any:
        return self.function.__kwdefaults__


def marking(function: Any = None, **options: Any) -> Any:
    """A stand-in for `pcbatch.autobatch`."""
    return Marked(function) if function is not None else lambda function: Marked(function)


def sync() -> None:
    """A stand-in for `pcbatch.sync`."""


def debug(text: str, *values: Any) -> None:
    """A stand-in for `pcbatch.debug`."""


sync.__module__ = debug.__module__ = cost.__module__


def load_live(path: Path) -> dict[str, Any]:
    """The namespace of the module at `path` after it has run with `marking` in the place of `autobatch`."""
    stand_in = ModuleType("pcbatch")
    stand_in.autobatch = marking  # type: ignore[attr-defined]
    stand_in.cost, stand_in.sync, stand_in.debug = cost, sync, debug  # type: ignore[attr-defined]
    namespace: dict[str, Any] = {"__name__": path.stem}
    real = sys.modules["pcbatch"]
    sys.modules["pcbatch"] = stand_in
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), namespace)
    finally:
        sys.modules["pcbatch"] = real
    return namespace


def program_of(path: Path) -> UntypedProgram:
    """The program of the default entry of a file, which is not imported."""
    entry = read_module(path).default_entry
    assert entry is not None
    return read_file(path, entry)


def batched_of(value: Any) -> BatchedFunction | None:
    """What the reader has to know of a marked function."""
    if not isinstance(value, Marked):
        return None
    tree, file = tree_of(value.function)
    return BatchedFunction(value.function, tree, file, cost=getattr(value.function, COST_ATTRIBUTE, None), itself=value)


def program_of_live(function: Any) -> Program:
    """The program of a marked function, of a plain one, or of a method."""
    plain, receiver = getattr(function, "__func__", function), getattr(function, "__self__", None)
    entry = batched_of(plain if isinstance(plain, Marked) else Marked(plain))
    assert entry is not None
    entry = replace(entry, receiver=receiver)
    return read_untyped(entry, batched_of, is_array=lambda value: isinstance(value, np.ndarray)).program


def fresh(arguments: Any) -> Any:
    """Arguments that a function may change."""
    return copy.deepcopy(arguments)
