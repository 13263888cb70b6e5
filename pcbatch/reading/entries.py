"""Dicts: entries by keys that are known, by words that differ by lane, and by a lane's numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gast

from pcbatch.reading.arrays import A_KEY, AN_ELEMENT, Arrays
from pcbatch.reading.operations import BINARY, POSITION
from pcbatch.reading.values import NONE, Choice, Host, Lane, Lazy, Ref, Tuple, Value, plain_number
from pcbatch.reading.views import Index, Sliced

MOST_KEYS = 64
"""The most keys of a dict that are tuples, among which one that differs by lane is looked for."""


class Entries(Arrays):
    """Dicts."""

    # of parts above
    is_list: Callable[[Value], bool]
    sequence: Callable[[Value], list[Value]]
    compare: Callable[[type, Value, Value], Value]
    loosen: Callable[[Value], None]
    items_of: Callable[[Value], Value]

    def set_of(self, values: Sequence[Value]) -> Value:
        """A new set of these elements."""
        with self.wanting():
            keys = [self.constant(each, AN_ELEMENT) for each in values]
        return self.new_container("set", dict.fromkeys(keys, NONE))

    def dict_of(self, keys: Sequence[Value], values: Sequence[Value]) -> Value:
        """A new dict of these entries."""
        with self.wanting():
            known = [self.constant(each, A_KEY) for each in keys]
        return self.new_container("dict", dict(zip(known, values, strict=True)))

    def entry(self, items: Mapping[Any, Value], index: Index) -> Value:
        """The entry of a dict at a key."""
        key = self.key(index)
        inside = self.is_key(items, key)
        if inside is not None:
            names = tuple(each.name for each in self._lanes_of(key)[:1])
            self.require(inside, "KeyError: {}" if names else "KeyError", names)
            return self._at(items, key) if items else NONE
        known = self.constant(key, A_KEY)
        try:
            return self.known(items[known])
        except (KeyError, TypeError) as error:
            message = f"KeyError: {known!r}; the dict has {', '.join(map(repr, items)) or 'nothing'}"
            raise self.refusal("PCB401", message if isinstance(error, KeyError) else f"TypeError: {error}") from None

    def differs(self, index: Index) -> bool:
        """Tell whether a key differs by lane."""
        return not isinstance(index, Sliced) and self._differs(self.key(index))

    def _differs(self, key: Value) -> bool:
        """Tell whether a key differs by lane: a number, a tuple with one, a sequence of which the length differs."""
        if isinstance(key, Tuple):
            return any(self._differs(self.read(each)) for each in key.items)
        return isinstance(key, Lane) or self.is_list(key)

    def key(self, index: Index) -> Value:
        """A key of a dict, or an element of a set."""
        if isinstance(index, Sliced):
            raise self.refusal("PCB401", "TypeError: unhashable type: 'slice'")
        if isinstance(index, tuple):
            return Tuple(tuple(map(self.key, index)))
        key = self.known(index)
        return key if isinstance(key, Choice) else self.read(key)

    def _lanes_of(self, key: Value) -> list[Lane]:
        if isinstance(key, Tuple):
            return [lane for each in key.items for lane in self._lanes_of(self.read(each))]
        return [key] if isinstance(key, Lane) else []

    def is_key(self, items: Mapping[Any, Value], key: Value) -> Host | Lane | None:
        """Tell whether a key that differs by lane is one of a dict's; None for one that is known."""
        if not self._differs(key):
            return None
        if not items:
            return Host(False)
        if isinstance(key, Lane) and all(isinstance(each, int) for each in items):
            return self.truth(self.emit(BINARY[gast.In], [key, [*map(plain_number, items)]]))
        if isinstance(key, Lane) or len(items) > MOST_KEYS:
            return None
        found: Host | Lane = Host(False)
        for each in items:
            found = self.either(found, self._is_at(key, each))
        return found

    def _is_at(self, key: Value, known: Any) -> Host | Lane:
        """Tell whether a key that differs by lane is one that is known."""
        if self.is_list(key):  # of which a tuple was made
            if not isinstance(known, tuple):
                return Host(False)
            known = list(known)
        return self.truth(self.compare(gast.Eq, key, self.host(known)))

    def _at(self, items: Mapping[Any, Value], key: Value) -> Value:
        """The entry at a key that differs by lane and is one of the dict's."""
        values = list(items.values())
        if isinstance(key, Lane):
            is_place = list(items) == [*range(len(items))]
            place = key if is_place else self.lane(self.emit(POSITION, [[*map(plain_number, items)], key]))
            return self.taken(values, place, is_checked=True)
        found = values[-1]
        for each, value in reversed([*zip(items, values, strict=True)][:-1]):
            is_it = self._is_at(key, each)
            found = self.chosen(is_it, value, found) if isinstance(is_it, Lane) else value if is_it.value else found
        return found

    def set_entry(self, whole: Ref, index: Index, value: Value) -> None:
        """`whole[index] = value` of a dict."""
        items = dict(self.state.cell(whole).items)
        key = Tuple(tuple(map(self.key, index))) if isinstance(index, tuple) else self.key(index)
        if isinstance(key, Choice) and self.type_of(key) is not None and not self._has_words(items, key):
            items[self.constant(self.read(key), A_KEY)] = value
        elif isinstance(key, Choice):
            for number in key.words:
                self._set_if(items, self.word(number), self.is_place(key.number, number), value)
        elif items and (inside := self.is_key(items, key)) is not None:
            if not isinstance(self.node, gast.AugAssign):
                self.loosen(whole)
            names = tuple(each.name for each in self._lanes_of(key)[:1])
            name = ": {}" if names else ""
            self.require(inside, f"KeyError{name}: a dict with known keys gets no others: begin with all", names)
            for each in [*items]:
                self._set_if(items, self.host(each), self._is_at(key, each), value)
        else:
            items[self.constant(key, A_KEY)] = value
        self.change(whole, items=items)

    def _has_words(self, items: Mapping[Any, Value], key: Choice) -> bool:
        return all(self.word(number).value in items for number in key.words)

    def _set_if(self, items: dict[Any, Value], key: Value, holds: Host | Lane, value: Value) -> None:
        """A store into the entry at a key that is known where a condition holds."""
        known = self.constant(key, A_KEY)
        if isinstance(holds, Host):
            items[known] = value if holds.value else items[known]
            return
        if known not in items:
            raise self.refusal("PCB313", f"the dict has no entry {known!r} on some way to this", "make it before")
        items[known] = self.chosen(holds, value, items[known])

    def dict_method(self, whole: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A method of a dict, captured ones among them."""
        if isinstance(whole, Host):
            items = {key: self.item_of_host(whole, key) for key in whole.value}
        else:
            assert isinstance(whole, Ref)
            items = dict(self.state.cell(whole).items)

        def becomes(found: dict[Any, Value]) -> None:
            if not isinstance(whole, Ref):
                raise self.captured_change(whole)
            self.change(whole, items=found)

        match name:
            case "items" | "keys" | "values":
                return Lazy(name, (whole,))
            case "copy":
                return self.new_container("dict", items)
            case "clear":
                becomes({})
                return NONE
            case "update":
                given = self.entries(arguments[0]) if arguments else {}
                becomes({**items, **given, **keywords})
                return NONE
        default = arguments[1] if len(arguments) > 1 else NONE
        if name == "get" and (inside := self.is_key(items, self.key(arguments[0]))) is not None:
            at = self.key(arguments[0])
            if isinstance(inside, Host):
                return default
            return self.choose(inside, lambda: self._at(items, at), lambda: default)
        key = self.constant(arguments[0], A_KEY) if arguments else None
        match name:
            case "get":
                return items.get(key, default)
            case "setdefault":
                becomes({**items, key: items.get(key, default)})
                return items.get(key, default)
            case "pop":
                if key not in items and len(arguments) < 2:
                    raise self.refusal("PCB401", f"KeyError: {key!r}")
                found = items.pop(key, default)
                becomes(items)
                return found
            case "popitem" if items:
                key, found = items.popitem()
                becomes(items)
                return Tuple((self.host(key), found))
        raise self.refusal("PCB423", f"a dict has no `{name}` here")

    def entries(self, value: Value) -> dict[Any, Value]:
        """The entries of a dict."""
        value = self.known(value)
        if isinstance(value, Host) and isinstance(value.value, dict):
            return {key: self.item_of_host(value, key) for key in value.value}
        cell = self.cell(value)
        if cell is not None and cell.kind == "dict":
            return dict(cell.items)
        pairs = [self.sequence(each) for each in self.sequence(self.items_of(value))]
        return {self.constant(key, A_KEY): item for key, item in pairs}
