"""Specialisations: what is known of a function of the program while it is read, and how far that has come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from pcbatch.errors import Span
from pcbatch.ir.types import TensorType
from pcbatch.reading.emitter import Emitter
from pcbatch.reading.kinds import Kind, is_alike
from pcbatch.reading.state import State
from pcbatch.reading.values import Frame, Function, Ref, Value

ROOM = 64
"""Initial room of lists whose length differs by lane."""


@dataclass(eq=False)
class Specialisation:
    """A function of the program. `result` is None as long as nothing is known to come back from it."""

    number: int
    function: Function
    kinds: dict[str, Kind]
    span: Span | None
    result: Kind | None = None
    gives: tuple[TensorType, ...] = ()
    """The types of results that a tail call wants, if it wants others."""
    name: str = ""
    emitter: Emitter | None = None
    parameters: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    is_busy: bool = False
    is_done: bool = False
    is_incomplete: bool = False
    """True if a statement of it is left out; see `recovery`."""
    asked: bool = False
    cost: float | None = None
    is_by_value: bool = True
    """True if its arguments are passed by value: its caller does not see its changes of them."""
    gives_new: bool = False
    """True if its result is new on all paths, as it is one of its arguments on some and another object on others."""
    gives_numbers: bool = False
    """Tells that it gives a member of an IntEnum as the number that it is, as it gives other numbers on other ways."""
    given: list[Any] = field(default_factory=list)
    """Its parameters' objects, in the order in which they are met."""
    stored: list[int] = field(default_factory=list)
    """Of the arrays among its parameters, by number, those that it stores into and hands back."""
    touched: set[int] = field(default_factory=set)
    """Of the arrays among its parameters, by number, those that it stores into, being values to it."""
    changed: list[int] = field(default_factory=list)
    """Of its parameters' objects, by number, those that it changes."""
    bound: list[str] = field(default_factory=list)
    """The variables of functions around it that it assigns."""
    shared: dict[int, frozenset[int]] = field(default_factory=dict)
    """Of the arrays that it gives, by number, which of its parameters' they may be, and, below 0, which of the others.

    The first one that it gives is -1 there.
    """
    lanes: tuple[str, ...] = ()
    arrays: list[Ref] = field(default_factory=list)
    before: dict[int, Any] = field(default_factory=dict)
    frame: Frame | None = None
    names: dict[Any, Value] = field(default_factory=dict)
    returns: list[Span | None] = field(default_factory=list)
    """The places where it returns a value."""


@dataclass(eq=False)
class Returning:
    """A value that a call gives back, and where."""

    block: Any
    state: State
    value: Value
    span: Span | None
    is_end: bool = False
    """True for the end of a body without `return`; `span` is the last statement then."""
    node: Any = None


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
    containers: dict[Any, Any] = field(default_factory=dict)
    """The elements of containers whose length differs by lane, by the place where these are made; see `lengths`."""
    room: int = ROOM
    """Room of these, if no more elements are there when they are made."""
    loose: set[Any] = field(default_factory=set)
    """The places where lists are made that are among these though they could be of one length."""
    fixed: set[Any] = field(default_factory=set)
    """The places where lists are made that are of one length: as `loose` ones, they were refused."""

    def fix(self) -> None:
        """Make the lists that could be of one length such."""
        self.fixed |= self.loose
        self.loose, self.types, self.containers = set(), {}, {}

    def forget(self, sites: Collection[Any]) -> None:
        """Forget of which kind elements are that have containers in them which are made at some places."""
        for site, elements in self.containers.items():
            self.containers[site] = _without(elements, sites)


def _without(elements: Any, sites: Collection[Any]) -> Any:
    is_made = elements.kind is not None and not elements.kind.sites.isdisjoint(sites)
    return replace(elements, kind=None) if is_made else elements


def same_results(a: Kind | None, b: Kind | None) -> bool:
    """Tell whether two results have one structure, the same types and the same words."""
    if a is None or b is None:
        return a is b
    return is_alike(a, b) and a.key(exact=True) == b.key(exact=True)


def told(kind: Kind) -> str:
    """Describe a kind in words."""
    if kind.form == "host":
        value = getattr(kind.value, "value", None)
        if kind.value is None or not hasattr(kind.value, "value") or callable(value):
            return "a function"
        return f"the module {value.__name__}" if isinstance(value, ModuleType) else f"`{value!r}`"
    if kind.form == "lazy":
        is_part = kind.cls in ("ragged", "masked", "filtered")
        return "a part of an array whose length differs by lane" if is_part else f"`{kind.cls}(..)`"
    words = {
        "lane": f"{kind.type}",
        "word": "a text",
        "optional": "`None` or a value",
        "object": "an object",
        "same": "an object that it was given",
        "given": "an array that it was given",
    }
    return words.get(kind.form, f"a {kind.form}")
