"""Specialisations: what is known of a function of the program while it is read, and how far that has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir.types import TensorType
from pcbatch.reading.emitter import Emitter
from pcbatch.reading.kinds import Kind, is_alike
from pcbatch.reading.state import State
from pcbatch.reading.values import (
    Frame,
    Function,
    Ref,
    Value,
)


@dataclass(eq=False)
class Specialisation:
    """A function of the program. `result` is None as long as nothing is known to come back from it."""

    number: int
    function: Function
    kinds: dict[str, Kind]
    span: Span | None
    result: Kind | None = None
    name: str = ""
    emitter: Emitter | None = None
    parameters: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    is_busy: bool = False
    is_done: bool = False
    asked: bool = False
    cost: float | None = None
    is_by_value: bool = True
    """Whether its arguments are values to it: what it changes of them its caller does not see."""
    given: list[Any] = field(default_factory=list)
    """Its parameters' objects, in the order in which they are met."""
    stored: list[int] = field(default_factory=list)
    """Of the arrays among its parameters, by number, those that it stores into."""
    changed: list[int] = field(default_factory=list)
    """Of its parameters' objects, by number, those that it changes."""
    bound: list[str] = field(default_factory=list)
    """The variables of functions around it that it assigns."""
    lanes: tuple[str, ...] = ()
    arrays: list[Ref] = field(default_factory=list)
    before: dict[int, Any] = field(default_factory=dict)
    frame: Frame | None = None
    names: dict[Any, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Returning:
    """A value that a call gives back, and where."""

    block: Any
    state: State
    value: Value
    span: Span | None


class WiderError(Exception):
    """A function is called with wider numbers than it was read for: the program is read anew."""


class StoredError(Exception):
    """A function stores into an array that its caller has handed over: it is read anew, to hand it back."""

    def __init__(self, spec: Specialisation):
        self.spec = spec


@dataclass(eq=False)
class Widths:
    """The types that parameters of functions turned out to need, by function and structure."""

    types: dict[Any, list[TensorType]] = field(default_factory=dict)


def same_results(a: Kind | None, b: Kind | None) -> bool:
    """Whether two results have one structure and the same types."""
    if a is None or b is None:
        return a is b
    return is_alike(a, b) and list(a.leaves()) == list(b.leaves())


def told(kind: Kind) -> str:
    """What a kind is, in words."""
    return {"lane": f"{kind.type}", "host": f"{getattr(kind.value, 'value', 'a function')!r}"}.get(
        kind.form, f"a {kind.form}"
    )
