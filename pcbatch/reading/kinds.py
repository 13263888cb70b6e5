"""Kinds: the structure of values that cross a call, with the types of the numbers and arrays in them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.values import Host, Value, is_number, is_same


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
