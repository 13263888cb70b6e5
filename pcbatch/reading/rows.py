"""Rows: elements of lists whose length differs by lane, of which each number is an array that has room for many.

A row holds an element by value. What can change in it is put back when it changes, as long as nobody else may have it;
else the change is refused (see `views`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gast
import numpy as np

from pcbatch.ir.types import ConflictError, TensorType
from pcbatch.lowering.codegen.environment import EMPTY, FULL
from pcbatch.reading.crossing import Crossing
from pcbatch.reading.kinds import Kind, Widths, is_alike, merged, sites_that_differ
from pcbatch.reading.operations import GETITEM, builtin
from pcbatch.reading.state import Cell, Home
from pcbatch.reading.values import NONE, Bound, Host, Lane, Ref, Tuple, Value, View
from pcbatch.reading.views import Index, Sliced

BLANK, PLACE, LAST = builtin("__blank__"), builtin("__place__"), builtin("__last__")
FREE, NEXT = builtin("__free__"), builtin("__next__")


@dataclass(frozen=True, eq=False)
class Elements:
    """The kind of a container's elements, None as long as nobody knows it, and how many of them there is room for.

    Those of a list that `is_bounded` are as they were declared, and there is never room for more.
    """

    kind: Kind | None
    room: int
    is_bounded: bool = False

    @property
    def of_type(self) -> TensorType | None:
        """The type that was declared for them, if they are numbers or arrays."""
        return self.kind.type if self.is_bounded and self.kind is not None and self.kind.form == "lane" else None

    @property
    def key(self) -> Any:
        """A hashable key that tells them from others."""
        return None if self.kind is None else self.kind.key(exact=True), self.room, self.is_bounded


class Rows:
    """Elements of a list, one after the other; `elements` says of what kind, of which each number is an array."""

    elements: Elements


class LengthenError(Exception):
    """Elements of another kind go into a list than was known when it was made: the program is read anew."""


class LoosenError(Exception):
    """Containers of one length take less code if they are of any: the program is read anew."""

    def __init__(self, site: Any):
        self.site = site


@functools.lru_cache(maxsize=1024)
def _class_of(key: Any) -> type[Rows]:
    """The class of rows of elements with a key."""
    return type("Rows", (Rows,), {"__module__": __name__})


def rows_class(elements: Elements) -> type[Rows]:
    """The class of rows of elements of a kind."""
    found = _class_of(elements.key)
    found.elements = elements
    return found


class ElementsInRows(Crossing):
    """Rows of elements."""

    widths: Widths
    containers: dict[Any, Elements]
    """The elements of containers whose length differs by lane, by the place where these are made."""

    def is_rows(self, value: Value) -> bool:
        """Tell whether a value is the rows of one."""
        cell = self.cell(value)
        return cell is not None and is_rows_class(cell.cls)

    def _new_rows(self, site: Any, arrays: Sequence[Value] | None = None) -> Ref:
        """Rows of the elements that lists made at a place have; of zeros, unless their arrays are given."""
        elements = self.containers[site]
        types = [] if elements.kind is None else elements.kind.leaves()
        leaves: dict[Any, Value] = {}
        for number, type_ in enumerate(types):
            whole = TensorType(type_.dtype, (elements.room, *type_.shape))
            given = self.emit(BLANK, [type_.dtype, *whole.shape]) if not arrays else arrays[number]
            leaves[number] = self.new("array", (self.lane(given, whole),))
        cls = rows_class(elements)
        ref = self.new("object", leaves, cls)
        self.state.set_cell(ref, site=site)
        return ref

    def _elements(self, rows: Value) -> Elements:
        cell = self.cell(rows)
        assert cell is not None and cell.cls is not None
        found: Elements = cell.cls.elements  # type: ignore[attr-defined]
        return found

    def kind_of_element(self, value: Value, leaves: list[Value]) -> Kind:
        """The kind of an element; its numbers and arrays go to `leaves`."""
        before, self._is_result, self._is_apart = (self._is_result, self._is_apart), True, True
        try:
            return self.kind_of(value, leaves, {})
        finally:
            self._is_result, self._is_apart = before

    def _widen(self, sites: Sequence[Any], kind: Kind) -> bool:
        """Tell whether the elements of lists that are made at some places are of a wider kind by this one."""
        is_wider = False
        for site in sites:
            known = self.containers[site]
            try:
                wide = kind if known.kind is None else self._merged(known.kind, kind)
            except ConflictError as error:
                raise self._unlike(self.conflict(error)) from None
            if known.kind is None or known.kind.key(exact=True) != wide.key(exact=True):
                self.containers[site] = replace(known, kind=wide)
                is_wider = True
        return is_wider

    def _merged(self, one: Kind, other: Kind) -> Kind:
        if not is_alike(one, other):
            self.refuse_kinds(one, other)
            error = self._unlike("they have no structure in common")
            error.wants = sites_that_differ(one, other)
            raise error
        return merged(one, other, self.joined)

    def _unlike(self, why: str) -> Any:
        return self.refusal(
            "PCB301",
            f"a list whose length differs by lane has elements of several kinds: {why}",
            "let all elements have one structure, with numbers that meet: `xs.append((0.0, k))`",
        )

    def _make_room(self, sites: Sequence[Any], count: int) -> bool:
        """Tell whether lists that are made at some places have to have more room, for `count` elements."""
        is_larger = False
        for site in sites:
            known = self.containers[site]
            if known.room < count and not known.is_bounded:
                self.containers[site] = replace(known, room=max(2 * known.room, 1 << (count - 1).bit_length()))
                is_larger = True
        return is_larger

    def refuse_rows(self, cells: Sequence[Cell]) -> None:
        if all(is_rows_class(cell.cls) for cell in cells):
            self._meet([(cell.site, cell.cls.elements) for cell in cells])  # type: ignore[union-attr]

    def _meet(self, rows: Sequence[tuple[Any, Elements]]) -> None:
        """Have lists that are made at several places have elements of one kind, from the beginning."""
        sites = [site for site, _ in rows]
        if any(elements.is_bounded for _, elements in rows):
            raise self.refusal(
                "PCB301",
                "a bounded list meets a list of another kind, or with room for another number of elements",
                "make both by `pcbatch.bounded`, with one shape, dtype and capacity",
            )
        for _, elements in rows:
            self._make_room(sites, elements.room)
            if elements.kind is not None:
                self._widen(sites, elements.kind)
        self.widths.forget(sites)
        raise LengthenError

    def refuse_kinds(self, one: Kind, other: Kind) -> None:
        """Have the elements of lists in values of two kinds be of one kind."""
        if one.cls is not other.cls and all(is_rows_class(each.cls) for each in (one, other)):
            self._meet([(each.site, each.cls.elements) for each in (one, other)])
        for pair in zip(one.items, other.items, strict=False):
            self.refuse_kinds(*pair)

    def put_row(self, rows: Ref, index: Value, value: Value) -> None:
        """`rows[index] = value`, at a place that is there."""
        if not isinstance(value, Tuple) or self._elements(rows).of_type is None:
            self._spread(rows, value)
            self._hold(value)
        self._put_leaves(rows, index, value)

    def _put_leaves(self, rows: Ref, index: Value, value: Value) -> None:
        elements = self._elements(rows)
        if elements.of_type is not None:
            self.store_element(self.state.cell(rows).items[0], index, value)
            self.state.set_cell(rows, version=self.state.cell(rows).version + 1)
            return
        leaves: list[Value] = []
        kind = self.kind_of_element(value, leaves)
        cell = self.state.cell(rows)
        if elements.is_bounded:
            if elements.kind is None or not is_alike(kind, elements.kind):
                raise self._unlike("it is bounded, and its elements have another structure")
        elif self._widen([cell.site], kind) or self.containers[cell.site].key != self._elements(rows).key:
            raise LengthenError
        with self.kept(leaves) as row:
            for number in range(len(leaves)):
                self.store_element(self.state.cell(rows).items[number], index, row[number])
        self.state.set_cell(rows, version=self.state.cell(rows).version + 1)

    def _spread(self, rows: Ref, value: Value) -> None:
        """Note of rows that what can change in them may be in other ones, too, if it goes into a second place."""
        for home in [cell.home for cell in self._cells_in(value) if cell.is_held]:
            if home is None or home.rows == rows:
                self.state.set_cell(rows, is_spread=True)
            elif home.rows.cell in self.state.heap:
                self.state.pair(rows.cell, home.rows.cell)
            if home is None:  # it may be in any of them
                for number in [number for number in self.state.heap if self.is_rows(Ref(number))]:
                    self.state.set_cell(Ref(number), is_spread=True)

    def _cells_in(self, value: Value) -> list[Cell]:
        found = {each.cell for each in self.state.reachable(iter([value])) if isinstance(each, Ref)}
        return [self.state.heap[number] for number in found if number in self.state.heap]

    def write_back(self, ref: Ref) -> None:
        """Put the element that an object is a part of back into its rows, as it is now."""
        home = self.state.heap[ref.cell].home
        if home is not None:
            self._put_leaves(home.rows, home.index, home.whole)
            self._at_home(replace(home, version=self.state.cell(home.rows).version))

    def _at_home(self, home: Home) -> None:
        for each in [*self.state.reachable(iter([home.whole]))]:
            if isinstance(each, Ref) and each.cell in self.state.heap:
                self.state.set_cell(each, is_held=True, home=home)

    def row_at(self, rows: Ref, index: Value) -> Value:
        """`rows[index]`, at a place that is there."""
        kind = self._elements(rows).kind
        if kind is None:  # nothing has been put into it so far: nobody gets here, or the program is read anew
            self.require(Host(False), "IndexError: list index out of range")
            return NONE
        found = self.made_of(kind, iter(self._numbers(rows, index)), [])
        self._hold(found)
        self._at_home(Home(rows, index, self.state.cell(rows).version, found))
        return self.known(found)

    def _numbers(self, rows: Ref, index: Value) -> Iterator[Value]:
        kind, cell = self._elements(rows).kind, self.state.cell(rows)
        assert kind is not None
        for number, type_ in enumerate([*kind.leaves()]):
            found = self.lane(self.emit(GETITEM, [self.pattern(cell.items[number]), self.pattern(index)]), type_)
            yield self.new("array", (found,)) if type_.shape else found

    def _hold(self, value: Value) -> None:
        """Note that a list has what can change in it by value: it must not change from now on."""
        for each in [*self.state.reachable(iter([value]))]:
            known = self.read(each) if isinstance(each, View) else each
            if isinstance(known, Lane) and known.name in self.types and known.type.shape:
                each = self.celled(known)
            if isinstance(each, Host) and self.is_fresh(each):
                each = self.own_of_host(each)  # it could change otherwise
            if isinstance(each, Ref) and each.cell in self.state.heap:
                self.state.set_cell(each, is_held=True)
                self._hold_arrays(self.shares(each))

    def _hold_arrays(self, names: set[str]) -> None:
        """Note the same of the arrays that an element may be, or may share its own elements with."""
        for name in names:
            type_ = self.types.get(name)
            if name.startswith("#") and int(name[1:]) in self.state.heap:
                self.state.set_cell(Ref(int(name[1:])), is_held=True)
            elif isinstance(type_, TensorType) and type_.shape:
                self.state.set_cell(self.celled(Lane(name, type_)), is_held=True)

    def _released_of_rows(self, rows: Ref, value: Value) -> Value:
        """An element that is taken out of rows: whoever gets it has it alone, if nobody else may have it."""
        for each in [*self.state.reachable(iter([value]))]:
            cell = self.cell(each)
            if cell is not None and cell.home is not None and self.is_alone(each, cell.home):
                self.state.set_cell(each, is_held=False, home=None)  # type: ignore[arg-type]
        return value

    def _free_of_rows(self, rows: Ref, length: Value) -> Value:
        """The place behind the last of `length` rows; the lane fails where there is no room."""
        length, elements = self.read(self.known(length)), self._elements(rows)
        if not isinstance(length, Host):
            return self.emit(NEXT if elements.is_bounded else FREE, [self.pattern(length), elements.room])
        if length.value < elements.room:
            return length
        if not elements.is_bounded:
            self._make_room([self.state.cell(rows).site], length.value + 1)
            raise LengthenError
        self.require(Host(False), FULL[1])
        return Host(elements.room - 1)

    def _place_of_rows(self, rows: Ref, index: Value, length: Value) -> Value:
        """The place that an index means among `length` rows; the lane fails where there is none."""
        index, length = self.read(self.known(index)), self.read(self.known(length))
        if isinstance(index, Host) and isinstance(length, Host):
            if -length.value <= index.value < length.value:
                return Host(index.value % length.value)
            self.require(Host(False), "IndexError: list index out of range")
            return index
        return self.emit(PLACE, [self.pattern(index), self.pattern(length)])

    def _last_of_rows(self, rows: Ref, length: Value) -> Value:
        """The place of the last of `length` rows, which is taken out; the lane fails where there is none."""
        length = self.read(self.known(length))
        if not isinstance(length, Host):
            return self.emit(LAST, [-1, self.pattern(length)])
        self.require(Host(length.value > 0), EMPTY[1])
        return Host(max(length.value - 1, 0))

    def _reorder_of_rows(self, rows: Ref, places: Value) -> Value:
        """Have the rows at other places, from now on."""
        for number, array in self.state.cell(rows).items.items():
            self.write(array, self._gathered(rows, number, places))
        self.state.set_cell(rows, version=self.state.cell(rows).version + 1)
        return NONE

    def _gathered(self, rows: Ref, number: int, places: Value) -> Lane:
        array = self.state.cell(rows).items[number]
        return self.lane(self.emit(GETITEM, [self.pattern(array), self.pattern(places)]), self.type_of(array))

    def _equal_of_rows(self, rows: Ref, value: Value, length: Value) -> Value:
        """Tell of each row whether it is one of the first `length`, and equal to a value."""
        kind, leaves = self._elements(rows).kind, list[Value]()
        own, length = self.kind_of_element(value, leaves), self.read(self.known(length))
        is_empty = isinstance(length, Host) and length.value == 0
        if is_empty or kind is None or not is_alike(kind, own):
            return Host(np.zeros(self._elements(rows).room, bool))
        found = self.compare(gast.Lt, Host(np.arange(self._elements(rows).room)), length)
        for array, leaf in zip(self.state.cell(rows).items.values(), leaves, strict=True):
            if self.type_of(leaf).shape:  # type: ignore[union-attr]
                raise self._unordered("looked for in a list")
            found = self._binary_of(gast.BitAnd, found, self.compare(gast.Eq, self.read(array), leaf))
        return found

    def _before_of_rows(self, rows: Ref, is_reversed: Value) -> Value:
        """Tell of each two rows whether the second one comes before the first one; equal ones stay as they stand."""
        kind = self._elements(rows).kind
        room = self._elements(rows).room
        op = gast.Gt if self.constant(is_reversed, "reverse") else gast.Lt
        found: Any = Host(np.tril(np.ones((room, room), bool), -1))
        types = [] if kind is None else [*kind.leaves()]
        if kind is not None and (any(each.shape for each in types) or not _is_ordered(kind)):
            raise self._unordered("put in order")
        for number in reversed(range(len(types))):
            array = self.state.cell(rows).items[number]
            first, second = (self.element(self.read(array), index) for index in (_COLUMN, _ROW))
            less = self.compare(op, second, first)
            same = self._binary_of(gast.BitAnd, self.compare(gast.Eq, second, first), found)
            found = self._binary_of(gast.BitOr, less, same)
        return found

    def _binary_of(self, op: type, a: Value, b: Value) -> Any:
        return self.binary(op, a, b)

    def _unordered(self, what: str) -> Any:
        return self.refusal(
            "PCB423",
            f"elements that are no numbers, or tuples of these, are {what}, and how many there are differs by lane",
            "keep a number beside each: `xs.append((key, x))`",
        )

    def attribute(self, value: Value, name: str) -> Value:
        if self.is_rows(value):
            return Host(self._elements(value).room) if name == "room" else Bound(name, value)
        return super().attribute(value, name)

    def object_item(self, whole: Ref, index: Index) -> Value:
        if self.is_rows(whole):
            assert not isinstance(index, Sliced | tuple)
            return self.row_at(whole, self.read(index))
        return super().object_item(whole, index)

    def set_object_item(self, whole: Ref, index: Index, value: Value) -> None:
        if self.is_rows(whole):
            assert not isinstance(index, Sliced | tuple)
            self.put_row(whole, self.read(index), value)
            return
        super().set_object_item(whole, index, value)

    def method(self, value: Value, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        if self.is_rows(value):
            assert not keywords
            found: Value = getattr(self, f"_{name}_of_rows")(value, *arguments)
            return found
        return super().method(value, name, arguments, keywords)


def is_rows_class(cls: Any) -> bool:
    """Tell whether a class is one of rows."""
    return isinstance(cls, type) and issubclass(cls, Rows)


def _is_ordered(kind: Kind) -> bool:
    """Tell whether values of a kind are numbers, or tuples of these."""
    return kind.form == "lane" or (kind.form in ("tuple", "list") and all(map(_is_ordered, kind.items)))


_COLUMN = (Sliced(None, None, None), NONE)
_ROW = (NONE, Sliced(None, None, None))
