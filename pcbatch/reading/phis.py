"""What the head of a loop has at a path that each turn gives a new value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pcbatch.ir.types import TensorType
from pcbatch.reading.state import State
from pcbatch.reading.values import Undefined, Value

Path = tuple[Any, ...]
"""Where a value is: a variable ("n", frame, name, ..) or a part of an object ("c", cell, key, ..), items of tuples."""


@dataclass(frozen=True)
class Celled:
    """A path of the head at which an array is an object that changes."""


@dataclass(frozen=True)
class Stale:
    """A path at which what a view held before is not what it holds in the next turn."""


@dataclass(frozen=True)
class Chosen:
    """A path at which one of several objects stands."""

    cells: tuple[int, ...]


@dataclass(frozen=True)
class Copied:
    """A path at which a new object stands after each turn, and before them one that has another name."""


@dataclass(frozen=True)
class Worded:
    """A path at which one of several words stands."""

    words: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Absent:
    """A path at which None stands in some lanes; in the others what stands for `value`, which `source` has."""

    value: Value
    source: State


Phi = TensorType | Absent | Celled | Copied | Stale | Chosen | Worded | Undefined
