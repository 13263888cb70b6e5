"""Modules that use `pcbatch.autobatch` loaded without the rest of pcbatch."""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from pcbatch.frontend import Built, FunctionSource, read_function
from pcbatch.frontend.translate.build import build
from pcbatch.function.hints import cost

FOLDER = Path(__file__).parent


def programs(folder: str) -> list[Path]:
    """The Python files of a folder of goldens."""
    return sorted((FOLDER / folder).glob("*.py"))


@dataclass
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


def load_live(path: Path) -> dict[str, Any]:
    """The namespace of the module at `path` after it has run with `marking` in the place of `autobatch`."""
    stand_in = ModuleType("pcbatch")
    stand_in.autobatch = marking  # type: ignore[attr-defined]
    stand_in.cost, stand_in.sync = cost, lambda: None  # type: ignore[attr-defined]
    stand_in.debug = lambda text, *values: None  # type: ignore[attr-defined]
    namespace: dict[str, Any] = {"__name__": path.stem}
    real = sys.modules["pcbatch"]
    sys.modules["pcbatch"] = stand_in
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    finally:
        sys.modules["pcbatch"] = real
    return namespace


def build_live(namespace: dict[str, Any], entry: str) -> Built:
    """The program of a marked function of a live namespace."""
    sources: dict[int, FunctionSource] = {}

    def read(marked: Marked) -> FunctionSource:
        return sources.setdefault(id(marked), read_function(marked.function))

    def resolve(source: FunctionSource, name: str) -> FunctionSource | None:
        value = namespace.get(name)
        return read(value) if isinstance(value, Marked) else None

    return build(read(namespace[entry]), resolve)


def fresh(arguments: Any) -> Any:
    """Arguments that a function may change."""
    return copy.deepcopy(arguments)
