"""Lists, sets and dicts whose length differs by lane.

Containers have one structure in all lanes as long as that can be: their elements are variables. A program in which that
cannot be is refused, with the places where the containers in question are made; it is read again with these as objects
of the classes of `lists_in_python`, whose elements are rows (see `rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gast
import numpy as np

from pcbatch.errors import UsageError
from pcbatch.ir.types import TensorType
from pcbatch.reading import lists_in_python
from pcbatch.reading.arrays import LISTED
from pcbatch.reading.containers import MUTATORS
from pcbatch.reading.core import NeedsConstantError
from pcbatch.reading.kinds import Kind, is_value
from pcbatch.reading.lists_in_python import Dict, List, Set
from pcbatch.reading.rows import Elements, ElementsInRows, LoosenError, rows_class
from pcbatch.reading.state import CellKind
from pcbatch.reading.values import NONE, Generator, Host, Lane, Lazy, OneOf, Ref, Tuple, Value
from pcbatch.reading.views import Index, Sliced


class Lengths(ElementsInRows):
    """Containers whose length differs by lane."""

    # of parts above
    folded: Callable[[Value, Value, Callable[[Value, Value], Value]], Value]

    # -- which they are ------------------------------------------------------------------------------------------------

    def is_list(self, value: Value) -> bool:
        """Tell whether a value is a list whose length differs by lane."""
        cell = self.cell(value)
        return cell is not None and cell.cls is List

    def differs_in_length(self, value: Value) -> bool:
        return self.is_list(value)

    def differs_or_may(self, value: Value) -> bool:
        if self.loops and self.kind(value) == "list":
            self.loosen(value)
        return self.is_list(value)

    def loosen(self, whole: Value) -> None:
        cell = self.cell(whole)
        if cell is not None and cell.site is not None and cell.site not in self.widths.fixed:
            raise LoosenError(cell.site)

    # -- making them ---------------------------------------------------------------------------------------------------

    def is_lengthened(self) -> bool:
        """Tell whether what is made here is of a length that differs by lane."""
        site = self.site()
        if self.file == lists_in_python.__file__:
            self.containers.setdefault(site, Elements(None, self.widths.room))
        return site in self.containers

    def new_container(self, kind: CellKind, items: Any) -> Ref:
        if not self.is_lengthened():
            return super().new_container(kind, items)
        if kind == "list":
            return self.list_of(self.site(), items)
        keys = [self.host(key) for key in items]
        return self.made_container(
            kind, keys if kind == "set" else [*map(Tuple, zip(keys, items.values(), strict=True))]
        )

    def set_of(self, values: Sequence[Value]) -> Value:
        return self.made_container("set", values) if self.is_lengthened() else super().set_of(values)

    def dict_of(self, keys: Sequence[Value], values: Sequence[Value]) -> Value:
        if not self.is_lengthened():
            return super().dict_of(keys, values)
        return self.made_container("dict", [*map(Tuple, zip(keys, values, strict=True))])

    def visit_List(self, node: Any) -> Value:
        if not (self.is_lengthened() and any(isinstance(each, gast.Starred) for each in node.elts)):
            return super().visit_List(node)
        with self.kept([self.list_of(self.site(), [])]) as row:
            for each in node.elts:
                is_starred = isinstance(each, gast.Starred)
                item = self.expression(each.value if is_starred else each)
                self.call_value(self.attribute(row[0], "extend" if is_starred else "append"), [item], {})
            return row[0]

    def repeated(self, whole: Value, items: Sequence[Value], times: Value) -> Value:
        if not self.is_lengthened():
            return super().repeated(whole, items, times)
        return self.call_value(self.attribute(self.list_of(self.site(), items), "__mul__"), [times], {})

    def visit_ListComp(self, node: Any) -> Value:
        if self.is_lengthened():
            return self._appended(node, self.list_of(self.site(), []))
        try:
            return super().visit_ListComp(node)
        except NeedsConstantError as error:
            error.wants = (*error.wants, self.site())
            raise

    def visit_SetComp(self, node: Any) -> Value:
        return self._comprehension(node, "set")

    def visit_DictComp(self, node: Any) -> Value:
        return self._comprehension(node, "dict")

    def _comprehension(self, node: Any, kind: CellKind) -> Value:
        """A set or a dict that is made by a comprehension."""
        if self.is_lengthened():
            if kind == "set":
                return self._appended(node, self.made_container(kind, []), "add")
            pairs = gast.ListComp(gast.Tuple([node.key, node.value], gast.Load()), node.generators)
            return self._appended(gast.copy_location(pairs, node), self.made_container(kind, []), "put")
        try:
            return super().visit_SetComp(node) if kind == "set" else super().visit_DictComp(node)
        except NeedsConstantError as error:
            error.wants = (*error.wants, self.site())
            raise

    def _appended(self, node: Any, whole: Value, name: str = "append") -> Value:
        """A list with the elements of a comprehension behind its own."""
        first = self.expression(node.generators[0].iter)
        return self._with_items(whole, Generator(node, self.frame, first), name)

    def lengthened_of(self, value: Value) -> Value | None:
        """A list of the items of another value, if its length differs by lane; else None."""
        value = self.known(value)
        if self.is_list(value):
            return self.call_value(self.attribute(value, "copy"), [], {})
        if not self.is_lengthened():
            return None
        return self._with_items(self.list_of(self.site(), []), value)

    def _with_items(self, whole: Value, value: Value, name: str = "append") -> Value:
        """A container with the items of another value, each added by a method."""
        with self.kept([whole]) as row:

            def add(_: Value, item: Value) -> Value:
                self.call_value(self.attribute(row[0], name), [item], {})
                return NONE

            self.folded(value, NONE, add)
            return row[0]

    def made_container(self, kind: CellKind, items: Sequence[Value]) -> Ref:
        """A set of elements, or a dict of pairs, whose length differs by lane."""
        found = self.construct(Set if kind == "set" else Dict, [Tuple(tuple(items))])
        assert isinstance(found, Ref)
        return found

    def construct(self, cls: type, arguments: Sequence[Value]) -> Value:
        """A new object of a class; see `constructors`."""
        return self.call_value(Host(cls), list(arguments), {})

    def list_of(self, site: Any, items: Sequence[Value]) -> Ref:
        """A list of a length that differs by lane, which has these elements."""
        with self.kept(items) as row:
            for each in items:
                self._widen([site], self.kind_of_element(each, []))
            self._make_room([site], len(items))
            rows = self._new_rows(site)
            for place in range(len(row)):
                self.put_row(rows, Host(place), row[place])
        return self._listed(rows, Host(len(items)), site)

    def _listed(self, rows: Ref, length: Value, site: Any) -> Ref:
        ref = self.new("object", {"rows": rows, "length": length}, List)
        self.state.set_cell(ref, site=site)
        return ref

    def object_item(self, whole: Ref, index: Index) -> Value:
        if isinstance(index, Sliced) and self.is_list(whole):
            bounds = [NONE if each is None else each for each in (index.lower, index.upper, index.step)]
            return self.call_value(self.attribute(whole, "part"), bounds, {})
        return super().object_item(whole, index)

    def set_object_item(self, whole: Ref, index: Index, value: Value) -> None:
        if isinstance(index, Sliced) and self.is_list(whole):
            raise self.refusal(
                "PCB422",
                "a slice of a list whose length differs by lane is assigned",
                "make another list, `xs = xs[:i] + ys + xs[j:]`, or write a loop",
            )
        super().set_object_item(whole, index, value)

    def delete_item(self, whole: Value, index: Index) -> None:
        known = self.known(whole)
        found = self.method_of(known, "__delitem__")
        if self.is_list(known):
            assert not isinstance(index, tuple)
            if isinstance(index, Sliced):
                raise self.refusal(
                    "PCB422", "a slice of a list whose length differs by lane is deleted", "write a loop"
                )
            self.call_value(self.attribute(known, "pop"), [index], {})
        elif found is not None:
            self.call_value(found, [self.index_value(index)], {})
        else:
            super().delete_item(whole, index)

    def iterable(self, value: Value) -> Value:
        value = self.known(value)
        if isinstance(value, OneOf) and all(map(self.is_list, value.items)):
            return self.call_value(self.attribute(value, "copy"), [], {})
        if isinstance(value, OneOf) and all(self.kind(each) == "list" for each in value.items):
            return self._row_of_several(value)
        cell = self.cell(value)
        found = None if cell is None or cell.kind != "object" else self.method_of(value, "__iter__")
        if found is None:
            return value
        mark = self.mark()
        given = self.known(self.call_value(found, [], {}))
        inner = self.iterable(given.parts[0]) if isinstance(given, Lazy) and given.kind == "iter" else given
        if self.is_list(inner):
            return inner
        self.back_to(mark)
        return value

    def _row_of_several(self, value: OneOf) -> Value:
        """A list with the items of one of several lists, if these are of different lengths; else `value`."""
        rows = [self.sequence(each) for each in value.items]
        return self._row_at(rows, value.index) if len(set(map(len, rows))) > 1 else value

    def _row_at(self, rows: Sequence[Sequence[Value]], index: Lane) -> Ref:
        """A list with the items of one of several rows: it is padded with those of the longest one."""
        self.containers.setdefault(self.site(), Elements(None, self.widths.room))
        longest = max(rows, key=len)
        padded = [[*row, *longest[len(row) :]] for row in rows]
        items = [self.taken(column, index) for column in zip(*padded, strict=True)]
        found = self.list_of(self.site(), items)
        length = self.taken([Host(len(row)) for row in rows], index)
        self.state.set_cell(found, items={**self.state.cell(found).items, "length": length}, is_held=True)
        return found

    def taken(self, items: Sequence[Value], index: Lane, *, is_checked: bool = False) -> Value:
        known = [self.known(each) for each in items]
        if all(map(_is_row, known)):
            rows = [self.sequence(each) for each in known]
            if len(set(map(len, rows))) > 1:
                return self._row_at(rows, self.placed(index, len(rows)) if is_checked else index)
        return super().taken(items, index, is_checked=is_checked)

    def unpacked(self, value: Value, count: int, star: int | None) -> list[Value]:
        value = self.iterable(value)
        if not self.is_list(value):
            return super().unpacked(value, count, star)
        with self.kept([value]) as row:
            behind = 0 if star is None else count - star - 1
            length, least = self.length(value), Host(count - (star is not None))
            fits = self.compare(gast.Eq if star is None else gast.GtE, length, least)
            self.require(self.truth(fits), f"ValueError: {count} variables are given other numbers of values")
            for place in range(count):
                if place == star:
                    bounds = [Host(place), Host(-behind) if behind else NONE, NONE]
                    row.append(self.call_value(self.attribute(row[0], "part"), bounds, {}))
                else:
                    is_behind = star is not None and place > star
                    row.append(self.item(row[0], Host(place - count if is_behind else place)))
            return [*row][1:]

    def lazy_item(self, whole: Value, index: Value) -> Value:
        if self.is_list(whole):
            rows = self.state.cell(whole).items["rows"]  # type: ignore[arg-type]
            return self.row_at(rows, self.read(index))
        return super().lazy_item(whole, index)

    def _list_of_rows(self, rows: Ref, places: Value, length: Value) -> Value:
        """A list of the first `length` rows, at other places."""
        site, elements = self.site(), self._elements(rows)
        self.containers.setdefault(site, elements)
        self._make_room([site], elements.room)
        if elements.kind is not None:
            self._widen([site], elements.kind)
        if self.containers[site].room != elements.room:
            raise self.refusal("PCB301", "lists with room for different numbers of elements meet in one place")
        if elements.kind is not None and not is_value(elements.kind):
            self.state.set_cell(rows, is_spread=True)
        arrays = [self._gathered(rows, number, places) for number in self.state.cell(rows).items]
        found = self._new_rows(site, arrays)
        self.state.set_cell(found, is_spread=self.state.cell(rows).is_spread)
        return self._listed(found, length, site)

    def _empty_of_rows(self, rows: Ref) -> Value:
        """An empty list, of any elements, with as much room."""
        site = self.site()
        self.containers.setdefault(site, Elements(None, self._elements(rows).room))
        self._make_room([site], self._elements(rows).room)
        return self.list_of(site, [])

    # -- as operands ---------------------------------------------------------------------------------------------------

    def compare(self, op: type, a: Value, b: Value) -> Value:
        both = [self.known(a), self.known(b)]
        if op in (gast.Eq, gast.NotEq) and any(map(self.is_list, both)) and any(isinstance(v, Tuple) for v in both):
            raise self.refusal(
                "PCB130",
                "a list or a tuple whose length differs by lane is compared with a tuple",
                "compare lists: `list(xs) == [1, 2]`",
            )
        return super().compare(op, a, b)

    def operand_of(self, value: Value) -> Any:
        if self.is_list(value):
            raise self.refusal("PCB130", "a list whose length differs by lane has no such operator", "write a loop")
        return super().operand_of(value)

    def record(self, value: Value) -> Any:
        cell = self.cell(value)
        if cell is not None and cell.cls in (List, Set, Dict):
            raise self.no_constant(
                "PCB130", f"{self.described(value)} whose length differs by lane goes into an operation", LISTED
            )
        return super().record(value)

    def store_element(self, array: Value, index: Index, value: Value) -> None:
        super().store_element(array, index, self.as_part(value))

    def as_part(self, value: Value) -> Value:
        """A list of numbers, or arrays, whose length differs by lane as the part of an array; else `value`."""
        value = self.known(value)
        if not self.is_list(value):
            return value
        cell = self.state.cell(value)  # type: ignore[arg-type]
        kind = self._elements(cell.items["rows"]).kind
        if kind is None or kind.form != "lane":
            return value
        array = self.lane(self.read(self.state.cell(cell.items["rows"]).items[0]))
        return Lazy("ragged", (array, Host(0), cell.items["length"], NONE, NONE), cell.site)

    def _array_of(self, value: Value, function: Any) -> Value | None:
        """A list whose length differs by lane as a part of an array: each tuple, or list, in it is a row."""
        part = self.as_part(value)
        cell = self.state.cell(self.known(value))  # type: ignore[arg-type]
        rows, length = cell.items["rows"], cell.items["length"]
        kind = self._elements(rows).kind
        is_nested = kind is not None and kind.form != "lane" and _is_grid(kind)
        if not isinstance(part, Lazy) and not is_nested:
            return None
        is_stack = function is np.stack
        if is_stack or is_nested:
            some = self.compare(gast.Gt, length, Host(0))
            what = "need at least one array to stack" if is_stack else "an array of no rows has no columns"
            self.require(self.truth(some), f"ValueError: {what}")
        if isinstance(part, Lazy):
            return part
        assert kind is not None
        arrays = [self.lane(self.read(each)) for each in self.state.cell(rows).items.values()]
        type_ = self.joined([each.type for each in arrays])
        columns = iter([self.lane(each, type_) for each in arrays])
        return Lazy("ragged", (self.lane(self._grid_of(kind, columns)), Host(0), length, NONE, NONE), cell.site)

    def _grid_of(self, kind: Kind, columns: Iterator[Value]) -> Value:
        """The array of a grid, its rows first, of one array for each number of a row."""
        if kind.form == "lane":
            return next(columns)
        parts = Tuple(tuple(self._grid_of(each, columns) for each in kind.items))
        return self.call_value(Host(np.stack), [parts], {"axis": Host(1)})

    def of_ragged(self, function: Any, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value | None:
        is_array = getattr(function, "__name__", "") in ("array", "asarray", "stack", "convert_to_tensor")
        if is_array and len(arguments) == 1 and not keywords and self.is_list(self.known(arguments[0])):
            return self._array_of(arguments[0], function)
        return super().of_ragged(function, [*map(self.as_part, arguments)], keywords)

    def bounded(self, function: Host, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        """A list that `pcbatch.bounded` makes."""
        given = [self.constant(each, "what a bounded list is made with") for each in arguments]
        named = {name: self.constant(each, "what a bounded list is made with") for name, each in keywords.items()}
        try:
            whole = function.value(*given, **named)
        except UsageError as error:
            help = "give an element's shape and dtype, and how many there may be: `pcbatch.bounded([], float, 8)`"
            raise self.refusal(error.code, error.message, help) from None
        except TypeError as error:
            raise self.refusal("PCB401", f"TypeError: {error}") from None
        items = np.asarray(whole.items)
        array = self.new("array", (self.lane(Host(items)),))
        elements = Elements(Kind("lane", TensorType(items.dtype.name, items.shape[1:])), len(items), is_bounded=True)
        rows = self.new("object", {0: array}, rows_class(elements))
        return self.new("object", {"rows": rows, "length": Host(int(whole.length))}, List)

    def attribute(self, value: Value, name: str) -> Value:
        if isinstance(value, Host) and is_bounded_class(type(value.value)) and name in MUTATORS:
            raise self.captured_change(value)
        cell = self.cell(value)
        is_own = cell is not None and cell.cls is List and self.file != lists_in_python.__file__
        if not is_own or name not in ("items", "length", "rows"):
            return super().attribute(value, name)
        assert cell is not None
        rows = self.state.cell(cell.items["rows"])
        elements: Elements = rows.cls.elements  # type: ignore[union-attr]
        if not elements.is_bounded or name == "rows" or elements.kind is None:
            raise self.refusal("PCB401", f"AttributeError: 'list' object has no attribute '{name}'")
        if name == "length":
            return self.known(cell.items["length"])
        with self.kept(rows.items.values()) as row:
            arrays = [self.call_value(Host(np.copy), [each], {}) for each in row]
        kind = elements.kind.with_leaves(self.lane(each).type for each in arrays)
        return self.made_of(kind, iter(arrays), [])


def _is_grid(kind: Kind) -> bool:
    """Tell whether values of a kind are numbers, or sequences of as many of these each."""
    if kind.form == "lane":
        return not kind.type.shape
    is_row = kind.form == "list" or (kind.form == "tuple" and kind.cls is None)
    return is_row and kind.items != () and all(map(_is_grid, kind.items)) and len({*map(_size, kind.items)}) == 1


def _size(kind: Kind) -> tuple[int, ...]:
    return () if kind.form == "lane" else (len(kind.items), *_size(kind.items[0]))


def _is_row(value: Value) -> bool:
    """Tell whether a value is a tuple, or a list of the world, which nobody changes."""
    is_plain = isinstance(value, Tuple) and value.cls is None
    return is_plain or (isinstance(value, Host) and isinstance(value.value, list) and value.place is not None)


def kind_of_bounded(items: Kind, length: Kind) -> Kind:
    """The kind of a list that comes from outside, by the kinds of what a `pcbatch.Bounded` has."""
    arrays = [*items.leaves()]
    room = min((each.shape[0] for each in arrays), default=0)
    element = items.with_leaves(replace(each, shape=each.shape[1:]) for each in arrays)
    leaves = tuple(Kind("lane", each) for each in arrays)
    elements = Elements(element, room, is_bounded=True)
    rows = Kind("object", items=leaves, keys=tuple(range(len(leaves))), cls=rows_class(elements))
    return Kind("object", items=(rows, length), keys=("rows", "length"), cls=List)


def is_bounded_class(cls: type | None) -> bool:
    """Tell whether objects of a class are the lists that `pcbatch.bounded` makes."""
    return cls is not None and cls.__name__ == "Bounded" and cls.__module__.startswith("pcbatch.")
