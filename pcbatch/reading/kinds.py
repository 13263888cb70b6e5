"""Kinds, the structure of values that cross a call, and specialisations, what is known of a function for some kinds."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir.types import TensorType
from pcbatch.reading.emitter import Emitter
from pcbatch.reading.state import State
from pcbatch.reading.values import Frame, Function, Host, Ref, Value, is_number, is_same


@dataclass(frozen=True, eq=False)
class Kind:
    """The structure of a value without its numbers: `form` is "lane", "host", "tuple", "list", "dict", "object" ..

    "word" is one of the words whose numbers are its `keys`.
    "same" is an object that has been met before, as number `type`. `value` is what is known of it now.
    """

    form: str
    type: Any = None
    items: tuple[Kind, ...] = ()
    keys: tuple[Any, ...] = ()
    cls: Any = None
    value: Value | None = None
    site: Any = None
    """Of a container, the place where it was made."""
    is_held: bool = False
    """True if a list whose length differs by lane has it inside, as a value."""

    @property
    def sites(self) -> set[Any]:
        """The places where containers in it were made."""
        return {self.site}.union(*(item.sites for item in self.items))

    def leaves(self) -> Iterator[TensorType]:
        """The types of its numbers and arrays, in order."""
        if self.form == "lane":
            yield self.type
        for item in self.items:
            yield from item.leaves()

    def with_leaves(self, types: Iterator[TensorType]) -> Kind:
        """The same with other types."""
        if self.form == "lane":
            return replace(self, type=next(types))
        return replace(self, items=tuple(item.with_leaves(types) for item in self.items))

    def key(self, *, exact: bool) -> Any:
        """Return a key of the kind; unless `exact`, numbers of other dtypes are the same."""
        if self.form == "lane":
            return ("lane", self.type) if exact else ("lane", self.type.shape, _class(self.type))
        if self.form == "host":
            return "host", _Known(self.value)
        return self.form, self.type, self.cls, self.keys, *(item.key(exact=exact) for item in self.items)


def _class(type_: TensorType) -> str:
    """Numbers of one class may be of one type: bools, complex numbers, all others."""
    return "bool" if type_.dtype == "bool" else "complex" if type_.dtype.startswith("complex") else "number"


class _Known:
    """A value that is known now, compared as values of Python's that mean the same to any program."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and is_same(self.value, other.value)

    def __hash__(self) -> int:
        host = getattr(self.value, "value", None)
        if is_number(host) or isinstance(host, str):
            return hash((type(host), host))
        return hash(type(self.value))


def size(kind: Kind) -> int:
    """Tell how much a value of a kind has in it: its numbers, those of its arrays, and its structures."""
    own = math.prod(each or 0 for each in kind.type.shape) if kind.form == "lane" else 1
    return own + sum(map(size, kind.items))


def is_value(kind: Kind) -> bool:
    """Tell whether nobody can change what is of this kind: numbers, what is known now, and tuples of these."""
    if kind.form == "lane":
        return not kind.type.shape
    return kind.form in ("host", "tuple", "range") and all(map(is_value, kind.items))


def is_alike(a: Kind, b: Kind) -> bool:
    """Return whether two kinds have one structure, whatever types their numbers have."""
    if a.form == b.form == "word":
        return True
    if a.form != b.form or len(a.items) != len(b.items) or a.keys != b.keys or a.cls is not b.cls:
        return False
    if a.form == "host":
        assert a.value is not None and b.value is not None
        return is_same(a.value, b.value)
    if a.form in ("same", "given"):
        return bool(a.type == b.type)
    return all(map(is_alike, a.items, b.items))


def merged(a: Kind, b: Kind, joined: Callable[[Sequence[TensorType]], TensorType]) -> Kind:
    """The kind that holds values of both, which are alike."""
    types = [joined([x, y]) for x, y in zip(a.leaves(), b.leaves(), strict=True)]
    return _with_words(a.with_leaves(iter(types)), b)


def _with_words(a: Kind, b: Kind) -> Kind:
    """A kind with the words of another one that is like it, too."""
    items = tuple(map(_with_words, a.items, b.items))
    keys = tuple(sorted({*a.keys, *b.keys})) if a.form == "word" else a.keys
    return replace(a, items=items, keys=keys, is_held=a.is_held or b.is_held)


def is_data(host: Host, is_array: Callable[[Any], bool]) -> bool:
    """Return whether a value that is known now may be a lane's: a number or an array."""
    return is_number(host.value) or isinstance(host.value, np.generic) or is_array(host.value)


def sites_that_differ(one: Kind, other: Kind) -> tuple[Any, ...]:
    """The places where the containers are made of which two values have other numbers of elements."""
    sites = tuple(each.site for each in (one, other) if each.site is not None)
    if sites and (len(one.items) != len(other.items) or one.form != other.form):
        return sites
    pairs = zip(one.items, other.items, strict=False)
    return tuple(site for pair in pairs for site in sites_that_differ(*pair))


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
