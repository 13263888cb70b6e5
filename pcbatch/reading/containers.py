"""Lists, dicts, sets and tuples: their items, their methods, and going over them."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gast

from pcbatch.errors import SHARED_ARGUMENT
from pcbatch.ir.expressions import Attribute
from pcbatch.reading.arrays import LISTED
from pcbatch.reading.core import RefusedError
from pcbatch.reading.entries import Entries
from pcbatch.reading.operations import GETITEM, POSITION, Operation, builtin, call_of
from pcbatch.reading.state import Cell
from pcbatch.reading.values import (
    NONE,
    Choice,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Part,
    Range,
    Ref,
    Tuple,
    Value,
    is_same,
)
from pcbatch.reading.views import Index, Sliced

COUNT = Operation(
    "count",
    lambda given, named: call_of(Attribute(given[0], "count"), given[1:], named),
    lambda ops, given, named: ops.count(*given),
)


LOOP_OVER = "loop over a sequence: `for i in range(n):`"
NO_ITEMS = "TypeError: 'NoneType' object is not iterable"
NO_ELEMENTS = "TypeError: 'NoneType' object is not subscriptable"
MUTABLE = (list, dict, set, collections.deque, bytearray)
"""Python's own classes of objects that can change."""
_OF_SEVERAL = {"add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop", "popitem"}
_OF_SETS = {"difference_update", "intersection_update", "symmetric_difference_update", "update"}
MUTATORS = frozenset(
    {"popleft", "remove", "reverse", "rotate", "setdefault", "sort", "subtract"} | _OF_SEVERAL | _OF_SETS
)
"""The methods by which these change."""

MOST_ITEMS = 1000
"""The most items of an iterator of Python's, and turns of a loop that appends to the list that it goes over."""


class Containers(Entries):
    """Items of Python's containers."""

    # of parts above
    differs_in_length: Callable[[Value], bool]
    differs_or_may: Callable[[Value], bool]
    generated: Callable[[Generator], list[Value]]
    live: Callable[[Value], Iterator[Value]]
    binary: Callable[[type, Value, Value], Value]
    lazy_item: Callable[[Value, Value], Value]
    object_item: Callable[[Ref, Index], Value]
    set_object_item: Callable[[Ref, Index, Value], None]
    in_order: Callable[[Value, dict[str, Value]], Value]
    object_length: Callable[[Ref], Value]

    def sequence(self, value: Value) -> list[Value]:
        """The items that a loop over `value` would take, one after the other."""
        value = self.there(value, NO_ITEMS)
        match value:
            case Tuple(items):
                return list(items)
            case Range():
                help = self.if_static((value.start, value.stop, value.step), LISTED)
                raise self.no_constant("PCB130", "how many numbers this range has differs by lane", help)
            case Generator():
                return self.generated(value)
            case Lazy():
                return [*self.live(value)]
            case Ref():
                cell = self.state.cell(value)
                if cell.kind == "list":
                    return list(cell.items)
                if cell.kind in ("dict", "set"):
                    return list(map(self.host, cell.items))
            case OneOf(index, items) if all(self.kind(each) == "list" for each in items):
                rows = [self.sequence(each) for each in items]
                if len({len(row) for row in rows}) > 1:
                    error = self.no_constant("PCB130", "how many elements this has differs by lane", LISTED)
                    error.wants = tuple(site for each in items if (site := self.state.cell(each).site) is not None)
                    raise error
                return [self.taken([row[k] for row in rows], index) for k in range(len(rows[0]))]
            case Host(host) if isinstance(host, list | tuple) and value.place is not None:
                return [self.item_of_host(value, key) for key in range(len(host))]
            case Host(host) if isinstance(host, Iterator):
                raise self.refusal(
                    "PCB119",
                    "an iterator from outside keeps its place in hidden state",
                    "go over what it was made of, a list or a range",
                )
            case Host(host) if not self.is_array(host):
                try:
                    return [self.host(each) for each in host]
                except TypeError:
                    raise self._without_items(value) from None
        if self.differs_in_length(value):
            raise self.no_constant("PCB130", "how many elements this list has differs by lane", LISTED)
        type_ = self.type_of(value)
        if type_ is None or not type_.shape:
            found = self.iterated(value)
            if found is not None:
                return found
            raise self._without_items(value)
        return [self.element(value, Host(k)) for k in range(type_.shape[0])]

    def _without_items(self, value: Value) -> RefusedError:
        help = LOOP_OVER + (f"; {SHARED_ARGUMENT}" if self.argument(self.read(value)) else "")
        return self.refusal("PCB109", f"{self.described(value)} is gone over, and has no items", help)

    def refuse_number(self, value: Value) -> Value:
        """`value`, of which the items are wanted, or what gives them; refused here for a number."""
        value = self.there(value, NO_ITEMS)
        if self.is_scalar(value):
            raise self._without_items(value)
        return self.iterable(value)

    def iterable(self, value: Value) -> Value:
        """Return the items of an object whose class defines them, if a counter can go over it; else `value`."""
        return value

    def iterated(self, value: Value) -> list[Value] | None:
        """The items of an object whose class says how; see `objects`."""
        return None

    # -- items ---------------------------------------------------------------------------------------------------------

    def item(self, whole: Value, index: Index) -> Value:
        """`whole[index]`."""
        whole = self.there(whole, NO_ELEMENTS)
        if isinstance(whole, OneOf):
            whole = self.iterable(whole)
        if isinstance(index, Choice) and self.type_of(whole) is None:
            return self.of_words(index, lambda word: self.item(whole, word))
        if isinstance(whole, Host) and isinstance(whole.value, dict) and self.differs(index):
            return self.entry({key: self.item_of_host(whole, key) for key in whole.value}, index)
        if self.type_of(whole) is not None:
            return self.element(whole, index)
        match whole:
            case Part():
                return self.emit(GETITEM, [whole.pattern, self.index_pattern(index)])
            case Tuple(items):
                return self._of_sequence(items, index, lambda found: Tuple(tuple(found)))
            case OneOf(which, items) if not isinstance(index, Sliced):
                return self.taken([self.item(each, index) for each in items], which)
            case Ref():
                cell = self.state.cell(whole)
                if cell.kind == "list":
                    with self.wanting(whole):
                        return self._of_sequence(
                            cell.items, index, lambda found: self.new_container("list", tuple(found))
                        )
                if cell.kind == "dict":
                    with self.wanting(whole):
                        return self.entry(cell.items, index)
                return self.object_item(whole, index)
            case Host(host):
                return self._of_host(whole, host, index)
            case Range():
                place = self.emit(builtin("__index__"), [self.pattern(index)]) if isinstance(index, Lane) else index
                step = self.binary(gast.Mult, place, whole.step)
                return self.binary(gast.Add, whole.start, step)
        raise self.refusal("PCB401", f"{self.described(whole)} has no elements")

    def _of_host(self, whole: Host, host: Any, index: Index) -> Value:
        known = index if isinstance(index, Sliced | tuple) else self.read(index)
        if isinstance(known, Lane):
            if isinstance(host, range):
                return self.lazy_item(whole, known)
            if isinstance(host, list | tuple):
                return self._of_sequence(
                    self.sequence(whole), index, lambda found: self.new_container("list", tuple(found))
                )
            if isinstance(host, str):
                return self._of_sequence(tuple(map(Host, host)), index, lambda found: Tuple(tuple(found)))
            raise self.refusal("PCB313", f"{self.described(whole)} takes constant keys only")
        key = self._host_index(index)
        if isinstance(host, list | dict | tuple) and not isinstance(key, slice):
            with self.raising(KeyError, IndexError, TypeError):
                return self.item_of_host(whole, key)
        with self.raising(KeyError, IndexError, TypeError):
            return self.host(host[key])

    def _host_index(self, index: Index) -> Any:
        match index:
            case Sliced(is_ragged=True):
                raise self.no_length()
            case Sliced():
                return self.known_slice(index)
            case tuple():
                return tuple(map(self._host_index, index))
        return self.constant(index, "an index of a list")

    def _of_sequence(self, items: Sequence[Value], index: Index, made: Callable[[Sequence[Value]], Value]) -> Value:
        if isinstance(index, Sliced):
            return made(items[self._host_index(index)])
        if isinstance(index, tuple):
            raise self.refusal("PCB401", "TypeError: list indices must be integers or slices, not tuple")
        place = self.read(self.known(index))
        if isinstance(place, Lane):
            if place.type.dtype == "bool":
                return self.choose(place, lambda: items[1], lambda: items[0])
            return self.taken(items, place, is_checked=True)
        key = self.constant(place, "an index of a list")
        if isinstance(key, slice):
            return made(items[key])
        try:
            return self.known(items[key])
        except (IndexError, TypeError) as error:
            raise self._out_of_range(items, error) from None

    def _out_of_range(self, items: Sequence[Value], error: Exception) -> RefusedError:
        return self.refusal("PCB401", f"{type(error).__name__}: {error} (of {len(items)})")

    def set_item(self, whole: Value, index: Index, value: Value) -> None:
        """`whole[index] = value`."""
        whole = self.there(whole, NO_ELEMENTS)
        if self.type_of(whole) is not None:
            self.store_element(whole, index, value)
            return
        cell = self.cell(whole)
        if isinstance(whole, OneOf):
            self._set_one_of(whole, index, value)
        elif isinstance(whole, Host) and isinstance(whole.value, MUTABLE):
            raise self.captured_change(whole)
        elif cell is None or not isinstance(whole, Ref):
            raise self.refusal(
                "PCB422",
                f"{self.described(whole)} has no elements that can be assigned",
                "make a list of it first: `xs = list(xs)`",
            )
        elif cell.kind == "list":
            self._set_in_list(whole, cell, index, value)
        elif cell.kind == "dict":
            with self.wanting(whole):
                self.set_entry(whole, index, value)
        else:
            self.set_object_item(whole, index, value)

    def _set_one_of(self, whole: OneOf, index: Index, value: Value) -> None:
        for place, each in enumerate(whole.items):
            old = self.item(each, index)
            new = self.chosen(self.is_place(whole.index, place), value, old)
            self.set_item(each, index, new)

    def _set_in_list(self, whole: Ref, cell: Cell, index: Index, value: Value) -> None:
        if isinstance(index, Sliced):
            items = list(cell.items)
            items[self._host_index(index)] = self.sequence(value)
            self.change(whole, items=tuple(items))
            return
        place = self.read(self.known(index))
        if isinstance(place, Lane):
            if any(self.type_of(each) is None for each in (*cell.items, value)):
                self._choose_in_list(whole, cell, place, value)
                return
            found = self.emit(
                builtin("__stored__"), [[self.pattern(each) for each in cell.items], self.pattern(value), place]
            )
            self.change(whole, items=tuple(self.sequence(found)))
            return
        key = self.constant(place, "an index of a list")
        items = list(cell.items)
        try:
            items[key] = value
        except (IndexError, TypeError) as error:
            raise self._out_of_range(items, error) from None
        self.change(whole, items=tuple(items))

    def _choose_in_list(self, whole: Ref, cell: Cell, index: Lane, value: Value) -> None:
        place = self.placed(index, len(cell.items))
        with self.kept([value, *cell.items]) as row:
            for k in range(1, len(row)):
                row[k] = self.chosen(self.is_place(place, k - 1), row[0], row[k])
            self.change(whole, items=tuple(row)[1:])

    def delete_item(self, whole: Value, index: Index) -> None:
        """`del whole[index]`."""
        whole = self.there(whole, NO_ELEMENTS)
        cell = self.cell(whole)
        if isinstance(whole, Host) and isinstance(whole.value, MUTABLE):
            raise self.captured_change(whole)
        if cell is None or cell.kind not in ("list", "dict") or not isinstance(whole, Ref):
            raise self.refusal(
                "PCB422", f"an entry of {self.described(whole)} cannot be deleted", "make what is left: `xs = xs[1:]`"
            )
        with self.wanting(whole):
            key = self._host_index(index)
        items: Any = dict(cell.items) if cell.kind == "dict" else list(cell.items)
        with self.raising(KeyError, IndexError, TypeError):
            del items[key]
        self.change(whole, items=items if cell.kind == "dict" else tuple(items))

    # -- methods -------------------------------------------------------------------------------------------------------

    def list_method(self, whole: Ref, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A method of a list."""
        items = list(self.state.cell(whole).items)

        def becomes(found: Sequence[Value]) -> Value:
            self.change(whole, items=tuple(found))
            return NONE

        match name, arguments:
            case "append", [value]:
                return becomes([*items, value])
            case "extend", [value]:
                return becomes([*items, *self.sequence(value)])
            case "insert", [place, value]:
                items.insert(self.constant(place, "a position of a list"), value)
                return becomes(items)
            case "pop", _:
                at = self.constant(arguments[0], "a position of a list") if arguments else -1
                try:
                    found = items.pop(at)
                except IndexError as error:
                    raise self._out_of_range(items, error) from None
                becomes(items)
                return self.known(found)
            case "clear", []:
                return becomes([])
            case "reverse", []:
                return becomes(items[::-1])
            case "copy", []:
                return self.new_container("list", tuple(items))
            case "sort", []:
                return becomes(self.sequence(self.in_order(whole, keywords)))
            case "index", [value]:
                return self.emit(POSITION, [self.pattern(whole), self.pattern(value)])
            case "count", [value]:
                return self.emit(COUNT, [self.pattern(whole), self.pattern(value)])
        raise self.no_constant(
            "PCB423", f"`{name}` of a list depends on the values in it, or is called in another form", LISTED
        )

    def length(self, value: Value) -> Value:
        """`len(value)`."""
        value = self.there(value, "TypeError: object of type 'NoneType' has no len()")
        type_ = self.type_of(value)
        if type_ is not None:
            if not type_.shape:
                raise self.refusal("PCB401", "TypeError: a number has no len()")
            return Host(type_.shape[0])
        match value:
            case Lazy("keys" | "values" | "items", (whole,)):
                return self.length(whole)
            case Tuple(items):
                return Host(len(items))
            case Range():
                return self.range_length(value)
            case OneOf(index, items):
                lengths = [self.length(each) for each in items]
                return lengths[0] if all(is_same(lengths[0], each) for each in lengths) else self.taken(lengths, index)
            case Host(host):
                with self.raising(TypeError):
                    return Host(len(host))
            case Ref():
                cell = self.state.cell(value)
                if cell.kind in ("list", "dict", "set"):
                    return Host(len(cell.items))
                return self.object_length(value)
        raise self.refusal("PCB401", f"TypeError: {self.described(value)} has no len()")

    def unpacked(self, value: Value, count: int, star: int | None) -> list[Value]:
        """The items that an assignment to `count` targets takes, of which the one at `star` takes what is left."""
        items = self.sequence(value)
        if star is None:
            if len(items) != count:
                raise self.refusal("PCB401", f"ValueError: {len(items)} values are unpacked into {count} variables")
            return items
        behind = count - star - 1
        if len(items) < count - 1:
            raise self.refusal("PCB401", f"ValueError: {len(items)} values are too few to unpack")
        middle = items[star : len(items) - behind]
        return [*items[:star], self.new_container("list", tuple(middle)), *items[len(items) - behind :]]
