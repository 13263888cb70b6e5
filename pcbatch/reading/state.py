"""The state of an interpretation: the variables of all frames, and the heap of objects that can change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pcbatch.reading.values import (
    Bound,
    Frame,
    Function,
    Generator,
    Item,
    Lane,
    Lazy,
    OneOf,
    Range,
    Ref,
    Super,
    Tuple,
    Value,
    View,
)

CellKind = Literal["list", "dict", "set", "object", "array", "bounded"]
Name = tuple[int, str]
"""A variable: the number of its frame, and its name there."""


@dataclass(frozen=True, eq=False)
class Cell:
    """An object that can change, as it is now. Nobody changes a Cell: the heap gets another one.

    `items` are a list's elements, a dict's values or an object's attributes by key, an array's one variable; `cls` is
    the class of an object. `version` counts the stores into an array's variable.
    """

    kind: CellKind
    items: Any
    cls: type | None = None
    version: int = 0

    def parts(self) -> Iterator[tuple[Any, Value]]:
        """The values inside, each with its key."""
        return iter(self.items.items()) if isinstance(self.items, dict) else iter(enumerate(self.items))

    def with_parts(self, change: Callable[[Any, Value], Value]) -> Cell:
        """The cell with each of its values changed."""
        if isinstance(self.items, dict):
            return replace(self, items={key: change(key, value) for key, value in self.items.items()})
        return replace(self, items=tuple(change(key, value) for key, value in enumerate(self.items)))


@dataclass(eq=False)
class State:
    """Variables and heap. Copying is cheap: values and cells never change themselves."""

    names: dict[Name, Value] = field(default_factory=dict)
    heap: dict[int, Cell] = field(default_factory=dict)
    origins: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of arrays that are one of several by now: the variables that they may share their elements with."""

    def copy(self) -> State:
        """A state that can go another way."""
        return State(dict(self.names), dict(self.heap), dict(self.origins))

    def cell(self, ref: Ref) -> Cell:
        """The object that a reference means."""
        return self.heap[ref.cell]

    def set_cell(self, ref: Ref, **changes: Any) -> None:
        """Change an object."""
        self.heap[ref.cell] = replace(self.heap[ref.cell], **changes)

    def mapped(self, change: Callable[[Value], Value | None]) -> None:
        """Put `change(value)` in the place of every value for which that is not None, wherever it stands."""

        def walk(value: Value) -> Value:
            found = change(value)
            return within(value, walk) if found is None else found

        self.names = {name: walk(value) for name, value in self.names.items()}
        self.heap = {number: cell.with_parts(lambda _, value: walk(value)) for number, cell in self.heap.items()}

    def reachable(self, roots: Iterator[Value] | None = None) -> Iterator[Value]:
        """All values that variables lead to, each once for each way to it that no cell is on twice."""
        seen: set[int] = set()
        waiting = list(self.names.values()) if roots is None else list(roots)
        while waiting:
            value = waiting.pop()
            yield value
            if isinstance(value, Ref):
                if value.cell not in seen and value.cell in self.heap:
                    seen.add(value.cell)
                    waiting += [each for _, each in self.heap[value.cell].parts()]
            else:
                waiting += inside(value)

    def collect(self) -> None:
        """Forget cells that nothing leads to."""
        found = {value.cell for value in self.reachable() if isinstance(value, Ref)}
        self.heap = {number: cell for number, cell in self.heap.items() if number in found}


def inside(value: Value) -> list[Value]:
    """The values that a value which is no reference leads to."""
    match value:
        case Tuple(items) | OneOf(items=items):
            return [*items, value.index] if isinstance(value, OneOf) else list(items)
        case Range(start, stop, step):
            return [start, stop, step]
        case Lazy(_, parts):
            return list(parts)
        case View(base, steps):
            return [base, *(steps.operands if isinstance(steps, Item) else ())]
        case Bound(function, receiver):
            return [receiver, *([function] if isinstance(function, Function) else [])]
        case Super(receiver):
            return [receiver]
        case Function():
            return [*value.defaults, *value.keyword_defaults.values()]
    return []


def within(value: Value, walk: Callable[[Value], Value]) -> Value:
    """`value` with what is inside of it changed, if it is no reference."""
    match value:
        case Tuple(items):
            return replace(value, items=tuple(map(walk, items)))
        case Range(start, stop, step):
            return Range(walk(start), walk(stop), walk(step))
        case Lazy(kind, parts):
            return Lazy(kind, tuple(map(walk, parts)))
        case View(base, Item(index, operands)):
            return replace(value, base=walk(base), steps=Item(index, tuple(map(walk, operands))))
        case View(base):
            return replace(value, base=walk(base))
        case Bound(function, receiver):
            return Bound(function, walk(receiver))
    return value


def frames_of(value: Value) -> Iterator[Frame]:
    """The frames whose variables a value may read later."""
    if isinstance(value, Function) and value.frame is not None:
        yield value.frame
    if isinstance(value, Generator):
        yield value.frame


Lanes = Mapping[str, Lane]
