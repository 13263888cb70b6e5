"""Lists, dicts, sets and tuples: their items, their methods, and going over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import gast

from pcbatch.ir.types import TensorType
from pcbatch.reading.arrays import Arrays, Index, Sliced, _parts
from pcbatch.reading.operations import BINARY, GETITEM, Operation, builtin
from pcbatch.reading.state import Cell
from pcbatch.reading.values import (
    NONE,
    Generator,
    Host,
    Lane,
    OneOf,
    Range,
    Ref,
    Tuple,
    Value,
    View,
)

POSITION = Operation("position", lambda given, named: f"{given[0]}.index({given[1]})", lambda ops, given, named: ops.position(*given, 0))
COUNT = Operation("count", lambda given, named: f"{given[0]}.count({given[1]})", lambda ops, given, named: ops.count(*given))
ONE_LENGTH = (
    "a list has the same length in all lanes: keep a flag beside each element, or take "
    "`pcbatch.bounded(shape, dtype, capacity)`"
)


class Containers(Arrays):
    """Items of Python's containers."""

    def sequence(self, value: Value) -> list[Value]:
        """The items that a loop over `value` would take, one after the other."""
        value = self.known(value)
        match value:
            case Tuple(items):
                return list(items)
            case Range():
                self.needs_constant("PCB130", "how many numbers this range has differs by lane", ONE_LENGTH)
            case Generator():
                return self.generated(value)
            case Ref():
                cell = self.state.cell(value)
                if cell.kind == "list":
                    return list(cell.items)
                if cell.kind in ("dict", "set"):
                    return [Host(key) for key in cell.items]
            case OneOf(index, items) if all(self.kind(each) == "list" for each in items):
                rows = [self.sequence(each) for each in items]
                return [self.taken([row[k] for row in rows], index) for k in range(len(rows[0]))]
            case Host(host) if isinstance(host, list | tuple) and value.place is not None:
                return [self.item_of_host(value, key) for key in range(len(host))]
            case Host(host) if not self.is_array(host):
                try:
                    return [self.host(each) for each in host]
                except TypeError:
                    self.refuse("PCB109", f"{self.described(value)} is gone over, and has no items")
        type_ = self.type_of(value)
        if type_ is None or not type_.shape:
            found = self.iterated(value)
            if found is not None:
                return found
            self.refuse("PCB109", f"{self.described(value)} is gone over, and has no items")
        return [self.element(value, Host(k)) for k in range(type_.shape[0])]

    def generated(self, value: Generator) -> list[Value]:
        """The items of a generator; see `comprehensions`."""
        raise NotImplementedError

    def iterated(self, value: Value) -> list[Value] | None:
        """The items of an object whose class says how; see `objects`."""
        return None

    # -- items ---------------------------------------------------------------------------------------------------------

    def item(self, whole: Value, index: Index) -> Value:
        """`whole[index]`."""
        whole = self.known(whole)
        if self.type_of(whole) is not None:
            return self.element(whole, index)
        match whole:
            case Tuple(items):
                return self._of_sequence(items, index, lambda found: Tuple(tuple(found)))
            case OneOf(which, items) if not isinstance(index, Sliced):
                return self.taken([self.item(each, index) for each in items], which)
            case Ref():
                cell = self.state.cell(whole)
                if cell.kind == "list":
                    return self._of_sequence(cell.items, index, lambda found: self.new("list", tuple(found)))
                if cell.kind == "dict":
                    return self._entry(cell, self.constant(index, "a key of a dict"))
                if cell.kind == "bounded":
                    return self.bounded_item(whole, index)
                return self.object_item(whole, index)
            case Host(host):
                return self._of_host(whole, host, index)
            case Range():
                place = self.emit(builtin("__index__"), [self.pattern(index)]) if isinstance(index, Lane) else index
                step = self.binary(gast.Mult, place, whole.step)
                return self.binary(gast.Add, whole.start, step)
        self.refuse("PCB401", f"{self.described(whole)} has no elements")

    def binary(self, op: type, a: Value, b: Value) -> Value:
        """An operator of two values; see `operators`."""
        raise NotImplementedError

    def lazy_item(self, whole: Value, index: Value) -> Value:
        """The item at a counter of what a loop goes over; see `loops`."""
        raise NotImplementedError

    def object_item(self, whole: Ref, index: Index) -> Value:
        """An item of an object whose class has `__getitem__`; see `objects`."""
        raise NotImplementedError

    def bounded_item(self, whole: Ref, index: Index) -> Value:
        """An element of a bounded list; see `objects`."""
        raise NotImplementedError

    def _entry(self, cell: Cell, key: Any) -> Value:
        if key not in cell.items:
            self.refuse("PCB401", f"KeyError: {key!r}; the dict has {', '.join(map(repr, cell.items)) or 'nothing'}")
        found: Value = cell.items[key]
        return self.known(found)

    def _of_host(self, whole: Host, host: Any, index: Index) -> Value:
        known = index if isinstance(index, Sliced | tuple) else self.read(index)
        if isinstance(known, Lane):
            if isinstance(host, range):
                return self.lazy_item(whole, known)
            if isinstance(host, list | tuple):
                return self._of_sequence(self.sequence(whole), index, lambda found: self.new("list", tuple(found)))
            self.refuse("PCB313", f"{self.described(whole)} takes constant keys only")
        key = self._host_index(index)
        if isinstance(host, list | dict | tuple) and not isinstance(key, slice):
            try:
                return self.item_of_host(whole, key)
            except (KeyError, IndexError, TypeError) as error:
                self.refuse("PCB401", f"{type(error).__name__}: {error}")
        try:
            return self.host(host[key])
        except (KeyError, IndexError, TypeError) as error:
            self.refuse("PCB401", f"{type(error).__name__}: {error}")

    def _host_index(self, index: Index) -> Any:
        match index:
            case Sliced(lower, upper, step):
                parts = (None if each is None else self.constant(each, "a bound of a slice") for each in (lower, upper, step))
                return slice(*parts)
            case tuple():
                return tuple(map(self._host_index, index))
        return self.constant(index, "an index of a list")

    def _of_sequence(self, items: Sequence[Value], index: Index, made: Callable[[Sequence[Value]], Value]) -> Value:
        if isinstance(index, Sliced):
            return made(items[self._host_index(index)])
        if isinstance(index, tuple):
            self.refuse("PCB401", "TypeError: list indices must be integers or slices, not tuple")
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
            return self._out_of_range(items, error)

    def _out_of_range(self, items: Sequence[Value], error: Exception) -> NoReturn:
        self.refuse("PCB401", f"{type(error).__name__}: {error} (of {len(items)})")

    def taken(self, items: Sequence[Value], index: Lane, *, is_checked: bool = False) -> Value:
        """The one of `items` at a lane's number."""
        items = [self.known(each) for each in items]
        if not items:
            self.refuse("PCB401", "IndexError: index out of range: it is empty")
        if all(isinstance(each, Tuple) for each in items) and len({(len(t.items), t.cls) for t in items}) == 1:  # type: ignore[union-attr]
            rows = zip(*(each.items for each in items), strict=True)  # type: ignore[union-attr]
            return Tuple(tuple(self.taken(row, index, is_checked=is_checked) for row in rows), items[0].cls)  # type: ignore[union-attr]
        if all(self.type_of(each) is not None for each in items):
            return self.sharing(self.emit(GETITEM, [[self.pattern(each) for each in items], index]), items)
        if all(isinstance(each, Ref) for each in items):
            place = self.placed(index, len(items)) if is_checked else index
            if len({*items}) == 1:
                return items[0]
            return OneOf(place, tuple(items))  # type: ignore[arg-type]
        if all(isinstance(each, Host) for each in items):
            return self.constants_at(items, index)  # type: ignore[arg-type]
        self.needs_constant("PCB313", "elements of several kinds stand at an index that differs by lane")

    def constants_at(self, items: Sequence[Host], index: Lane) -> Value:
        """One of several values of Python's, by lane."""
        self.needs_constant("PCB313", "elements that are no numbers stand at an index that differs by lane")

    def placed(self, index: Lane, length: int) -> Lane:
        """An index of a list as a number from 0, checked."""
        table = [*range(length)]
        found = self.emit(GETITEM, [table, index])
        return self.lane(found, TensorType("int32"))

    def set_item(self, whole: Value, index: Index, value: Value) -> None:
        """`whole[index] = value`."""
        whole = self.known(whole)
        if self.type_of(whole) is not None:
            self.store_element(whole, index, value)
            return
        cell = self.cell(whole)
        if isinstance(whole, OneOf):
            self._set_one_of(whole, index, value)
        elif cell is None or not isinstance(whole, Ref):
            self.refuse("PCB422", f"{self.described(whole)} has no elements that can be assigned")
        elif cell.kind == "list":
            self._set_in_list(whole, cell, index, value)
        elif cell.kind == "dict":
            key = self.constant(index if not isinstance(index, tuple) else Tuple(index), "a key of a dict")
            self.state.set_cell(whole, items={**cell.items, key: value})
        elif cell.kind == "bounded":
            self.set_bounded(whole, index, value)
        else:
            self.set_object_item(whole, index, value)

    def set_bounded(self, whole: Ref, index: Index, value: Value) -> None:
        """A store into a bounded list; see `objects`."""
        raise NotImplementedError

    def set_object_item(self, whole: Ref, index: Index, value: Value) -> None:
        """`__setitem__` of an object; see `objects`."""
        raise NotImplementedError

    def _set_one_of(self, whole: OneOf, index: Index, value: Value) -> None:
        for place, each in enumerate(whole.items):
            old = self.item(each, index)
            new = self.chosen(self.is_place(whole.index, place), value, old)
            self.set_item(each, index, new)

    def _set_in_list(self, whole: Ref, cell: Cell, index: Index, value: Value) -> None:
        if isinstance(index, Sliced):
            items = list(cell.items)
            items[self._host_index(index)] = self.sequence(value)
            self.state.set_cell(whole, items=tuple(items))
            return
        place = self.read(self.known(index))
        if isinstance(place, Lane):
            if any(self.type_of(each) is None for each in (*cell.items, value)):
                self._choose_in_list(whole, cell, place, value)
                return
            found = self.emit(builtin("__stored__"), [[self.pattern(each) for each in cell.items], self.pattern(value), place])
            self.state.set_cell(whole, items=tuple(self.sequence(found)))
            return
        key = self.constant(place, "an index of a list")
        items = list(cell.items)
        try:
            items[key] = value
        except (IndexError, TypeError) as error:
            self._out_of_range(items, error)
        self.state.set_cell(whole, items=tuple(items))

    def _choose_in_list(self, whole: Ref, cell: Cell, index: Lane, value: Value) -> None:
        place = self.placed(index, len(cell.items))
        items = [self.chosen(self.is_place(place, k), value, old) for k, old in enumerate(cell.items)]
        self.state.set_cell(whole, items=tuple(items))

    def delete_item(self, whole: Value, index: Index) -> None:
        """`del whole[index]`."""
        cell = self.cell(self.known(whole))
        if cell is None or cell.kind not in ("list", "dict") or not isinstance(whole, Ref):
            self.refuse("PCB422", f"an entry of {self.described(whole)} cannot be deleted")
        key = self._host_index(index)
        items: Any = dict(cell.items) if cell.kind == "dict" else list(cell.items)
        try:
            del items[key]
        except (KeyError, IndexError, TypeError) as error:
            self.refuse("PCB401", f"{type(error).__name__}: {error}")
        self.state.set_cell(whole, items=items if cell.kind == "dict" else tuple(items))

    # -- methods -------------------------------------------------------------------------------------------------------

    def list_method(self, whole: Ref, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A method of a list."""
        items = list(self.state.cell(whole).items)

        def becomes(found: Sequence[Value]) -> Value:
            self.state.set_cell(whole, items=tuple(found))
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
                place = self.constant(arguments[0], "a position of a list") if arguments else -1
                try:
                    found = items.pop(place)
                except IndexError as error:
                    self._out_of_range(items, error)
                becomes(items)
                return self.known(found)
            case "clear", []:
                return becomes([])
            case "reverse", []:
                return becomes(items[::-1])
            case "copy", []:
                return self.new("list", tuple(items))
            case "sort", []:
                return becomes(self.sequence(self.in_order(whole, keywords)))
            case "index", [value]:
                return self.emit(POSITION, [self.pattern(whole), self.pattern(value)])
            case "count", [value]:
                return self.emit(COUNT, [self.pattern(whole), self.pattern(value)])
        self.refuse("PCB423", f"`{name}` of a list depends on the values in it, or is called in another form", ONE_LENGTH)

    def in_order(self, value: Value, keywords: dict[str, Value]) -> Value:
        """`sorted(value, ..)`; see `builtins`."""
        raise NotImplementedError

    def dict_method(self, whole: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """A method of a dict, captured ones among them."""
        if isinstance(whole, Host):
            items = {key: self.item_of_host(whole, key) for key in whole.value}
        else:
            assert isinstance(whole, Ref)
            items = dict(self.state.cell(whole).items)

        def becomes(found: dict[Any, Value]) -> None:
            if not isinstance(whole, Ref):
                self.refuse("PCB204", "a captured dict is changed here, for everybody", "copy it first: `d = dict(d)`")
            self.state.set_cell(whole, items=found)

        match name:
            case "items":
                return Tuple(tuple(Tuple((self.host(key), value)) for key, value in items.items()))
            case "keys":
                return Tuple(tuple(map(self.host, items)))
            case "values":
                return Tuple(tuple(items.values()))
            case "copy":
                return self.new("dict", items)
            case "clear":
                becomes({})
                return NONE
            case "update":
                given = self.entries(arguments[0]) if arguments else {}
                becomes({**items, **given, **keywords})
                return NONE
        key = self.constant(arguments[0], "a key of a dict") if arguments else None
        default = arguments[1] if len(arguments) > 1 else NONE
        match name:
            case "get":
                return items.get(key, default)
            case "setdefault":
                becomes({**items, key: items.get(key, default)})
                return items.get(key, default)
            case "pop":
                if key not in items and len(arguments) < 2:
                    self.refuse("PCB401", f"KeyError: {key!r}")
                found = items.pop(key, default)
                becomes(items)
                return found
            case "popitem" if items:
                key, found = items.popitem()
                becomes(items)
                return Tuple((self.host(key), found))
        self.refuse("PCB423", f"a dict has no `{name}` here")

    def entries(self, value: Value) -> dict[Any, Value]:
        """The entries of a dict."""
        value = self.known(value)
        if isinstance(value, Host) and isinstance(value.value, dict):
            return {key: self.item_of_host(value, key) for key in value.value}
        cell = self.cell(value)
        if cell is not None and cell.kind == "dict":
            return dict(cell.items)
        pairs = [self.sequence(each) for each in self.sequence(value)]
        return {self.constant(key, "a key of a dict"): item for key, item in pairs}

    def length(self, value: Value) -> Value:
        """`len(value)`."""
        value = self.known(value)
        type_ = self.type_of(value)
        if type_ is not None:
            if not type_.shape:
                self.refuse("PCB401", "TypeError: a number has no len()")
            return Host(type_.shape[0])
        match value:
            case Tuple(items):
                return Host(len(items))
            case Range():
                return self.range_length(value)
            case OneOf(_, items):
                return self.length(items[0])
            case Host(host):
                try:
                    return Host(len(host))
                except TypeError as error:
                    self.refuse("PCB401", f"TypeError: {error}")
            case Ref():
                cell = self.state.cell(value)
                if cell.kind in ("list", "dict", "set"):
                    return Host(len(cell.items))
                return self.object_length(value)
        self.refuse("PCB401", f"TypeError: {self.described(value)} has no len()")

    def object_length(self, value: Ref) -> Value:
        """`len` of an object; see `objects`."""
        raise NotImplementedError

    def unpacked(self, value: Value, count: int, star: int | None) -> list[Value]:
        """The items that an assignment to `count` targets takes, of which the one at `star` takes what is left."""
        items = self.sequence(value)
        if star is None:
            if len(items) != count:
                self.refuse("PCB401", f"ValueError: {len(items)} values are unpacked into {count} variables")
            return items
        behind = count - star - 1
        if len(items) < count - 1:
            self.refuse("PCB401", f"ValueError: {len(items)} values are too few to unpack")
        middle = items[star : len(items) - behind]
        return [*items[:star], self.new("list", tuple(middle)), *items[len(items) - behind :]]


__all__ = ["BINARY", "Containers", "View", "_parts", "replace"]
