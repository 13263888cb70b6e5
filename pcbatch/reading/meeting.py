"""Joins of values: those that paths have in common, and the copies on each path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.ir.types import ConflictError, TensorType
from pcbatch.reading.emitter import OpenBlock, hint_of
from pcbatch.reading.meeting_of_parts import PartsMeeting
from pcbatch.reading.phis import of_kinds, placed, quoted, unassigned, unlike
from pcbatch.reading.several import NUMBER, Several, refs_of
from pcbatch.reading.state import Cell, Home, State, are_alike, computes_again, joined_twins, sites_of, with_joined
from pcbatch.reading.values import (
    Bound,
    Choice,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Optional,
    Range,
    Ref,
    Super,
    Tuple,
    Undefined,
    Value,
    View,
    is_same,
)

End = tuple[OpenBlock, State]
"""A block that has no terminator yet, and what is known at its end."""

ONE_LENGTH = (
    "make a list of the function's own of it, `xs = list(xs)`, which may have another length in each lane; or give it "
    "one length on each path"
)


class ValueJoin(PartsMeeting):
    """The state in which several ways meet, found from the states at their ends."""

    def __init__(self, reader: Several, ends: Sequence[End]):
        self.reader, self.ends = reader, ends
        self.states = [state for _, state in ends]
        self.copies: list[tuple[Lane, tuple[Value, ...]]] = []
        self.cells: dict[tuple[int, ...], Ref] = {}
        self.out = State()
        self.apart: set[int] = set()
        """Objects that stay what they are on all ways: a variable behind may hold them or others."""
        self.crossed: list[dict[int, set[tuple[int, ...]]]] = []

    def state(self) -> State:
        """The state in which all meet."""
        self._cell_arrays()
        names = dict.fromkeys(name for state in self.states for name in state.names)
        self._tell_apart()
        for state in self.states:
            self.out.origins |= state.origins
            self.out.places |= state.places
        for name in names:
            values = [state.names.get(name) for state in self.states]
            if None in values and name[1].startswith(" "):
                continue  # a value on the way to what has been left
            if None in values:
                found = self.missing(values, name[1])
            else:
                found = self.value(values, name[1])  # type: ignore[arg-type]
            if isinstance(found, Undefined):
                found = placed(self.reader, self.states, name, found, values)
            self.out.names[name] = found
        self.out.twins = joined_twins(self.states, self.cells)
        self.out.origins = with_joined(self.out.origins, self.cells)
        self.out.facts = _in_all([state.facts for state in self.states])
        self.out.meanings = _in_all([state.meanings for state in self.states])
        self.out.excluded = _in_all([state.excluded for state in self.states])
        return self.out

    # -- arrays --------------------------------------------------------------------------------------------------------

    def _cell_arrays(self) -> None:
        """Make an array an object on all paths where one path has stored into it and another has not."""
        changed = True
        while changed:
            changed = False
            for values in self._pairs():
                if not any(self._is_array_cell(state, value) for state, value in zip(self.states, values, strict=True)):
                    continue
                for way, (state, value) in enumerate(zip(self.states, values, strict=True)):
                    if self.is_array(value):
                        self.reader.in_state(state, lambda value=value: self.reader.celled(value))
                        changed = True
                    elif self.reader.is_fresh(value):
                        self._at_end(way, lambda value=value: self.reader.own_of_host(value))
                        changed = True
                if changed:
                    break

    def is_array(self, value: Value) -> bool:
        """Tell whether a value is a variable that holds an array."""
        is_lane = isinstance(value, Lane) and value.name in self.reader.types
        return is_lane and bool(value.type.shape)  # type: ignore[union-attr]

    def _is_array_cell(self, state: State, value: Value) -> bool:
        return isinstance(value, Ref) and state.heap[value.cell].kind == "array"

    def _pairs(self) -> Iterable[tuple[Value, ...]]:
        """The values that meet, as far as they have the same structure."""
        seen: set[tuple[Any, ...]] = set()
        waiting: list[tuple[Value, ...]] = []
        for name in self.states[0].names:
            if all(name in state.names for state in self.states):
                waiting.append(tuple(state.names[name] for state in self.states))
        waiting += [(Ref(number),) * len(self.states) for number in self.apart]
        while waiting:
            values = waiting.pop()
            if self.is_optional(values):
                values = tuple(self.contents(values)[1])
                if not values:
                    continue
            yield values
            first = values[0]
            if isinstance(first, Ref) and all(isinstance(each, Ref) for each in values):
                key = tuple(each.cell for each in values)  # type: ignore[union-attr]
                if key in seen:
                    continue
                seen.add(key)
                cells = [state.heap[number] for state, number in zip(self.states, key, strict=True)]
                if are_alike(cells):
                    parts = [dict(cell.parts()) for cell in cells]
                    common = [k for k in parts[0] if all(k in each for each in parts)]
                    waiting += [tuple(each[k] for each in parts) for k in common]
            elif all(isinstance(each, Bound) for each in values):
                waiting.append(tuple(each.receiver for each in values))  # type: ignore[union-attr]
            elif isinstance(first, View) and all(isinstance(each, View) for each in values):
                waiting.append(tuple(each.base for each in values))  # type: ignore[union-attr]
            elif isinstance(first, Tuple) and all(
                isinstance(each, Tuple) and len(each.items) == len(first.items) for each in values
            ):
                waiting += zip(*(each.items for each in values), strict=True)  # type: ignore[union-attr]

    # -- objects -------------------------------------------------------------------------------------------------------

    def _tell_apart(self) -> None:
        """Find out which objects stay what they are, and with which of the others each of them meets."""
        while True:
            self.crossed = self._crossings()
            wanted = {number for values in self._pairs() for number in self._several(values)} - self.apart
            if not wanted:
                return
            self.apart |= wanted
            for number in wanted:
                source = next(state for state in self.states if number in state.heap)
                for state in self.states:
                    self.reader.stand_in(Ref(number), source, state)

    def _crossings(self) -> list[dict[int, set[tuple[int, ...]]]]:
        """For each way, with which objects of the others each of its objects meets."""
        found: list[dict[int, set[tuple[int, ...]]]] = [{} for _ in self.states]
        for values in self._pairs():
            if all(isinstance(each, Ref) for each in values):
                key = tuple(each.cell for each in values)  # type: ignore[union-attr]
                for place, number in enumerate(key):
                    found[place].setdefault(number, set()).add(key)
        return found

    def _several(self, values: Sequence[Value]) -> set[int]:
        """The objects of which a value behind is one, where `values` meet; nothing where they are one object then."""
        cells = {ref.cell for each in values for ref in refs_of(each)}
        if not all(isinstance(each, Ref) for each in values):
            are_objects = all(isinstance(each, Ref | OneOf) or self.reader.is_fixed(each) for each in values)
            return cells if are_objects else set()
        key = tuple(each.cell for each in values)  # type: ignore[union-attr]
        kinds = {state.heap[number].kind for state, number in zip(self.states, key, strict=True)}
        are_values = all(state.heap[number].is_held for state, number in zip(self.states, key, strict=True))
        return set() if len(cells) == 1 or are_values or self._is_one(key) or kinds == {"array"} else cells

    def _is_one(self, key: tuple[int, ...]) -> bool:
        """Tell whether objects that meet meet with nothing else, and so are one object behind."""
        return all(len(self.crossed[place].get(number, {key})) == 1 for place, number in enumerate(key))

    def missing(self, values: Sequence[Value | None], name: str) -> Value:
        """A variable that has no value on some of the ways."""
        return unassigned(name)

    def value(self, values: Sequence[Value], what: str) -> Value:
        """The value that is one of `values`, depending on the way."""
        first = values[0]
        if all(each is first for each in values) and isinstance(first, Lane | Host | Choice | Super):
            return first
        undefined = next((each for each in values if isinstance(each, Undefined)), None)
        if undefined is not None:
            return undefined
        if all(isinstance(each, Ref) for each in values):
            return self._object([each.cell for each in values], what)  # type: ignore[union-attr]
        if all(is_same(first, each) for each in values[1:]):
            return self._same(first, what)
        if _are_one_part(values):
            base = self.value([each.base for each in values], what)  # type: ignore[union-attr]
            return base if isinstance(base, Undefined) else replace(first, base=base, seen=None)  # type: ignore[arg-type]
        if self.is_optional(values):
            return self.optional(values, what)
        if self.reader.are_words(values):
            return self._word(values, what)
        types = [
            self.reader.in_state(s, lambda v=v: self.reader.type_of(v))
            for s, v in zip(self.states, values, strict=True)
        ]
        if None not in types:
            return self.number(values, types, what)
        if isinstance(first, Tuple) and all(
            isinstance(each, Tuple) and each.cls is first.cls and len(each.items) == len(first.items) for each in values
        ):
            rows = zip(*(each.items for each in values), strict=True)  # type: ignore[union-attr]
            return Tuple(tuple(self.value(row, f"{what}[{place}]") for place, row in enumerate(rows)), first.cls)
        if all(isinstance(each, Range) for each in values):
            parts = zip(*((each.start, each.stop, each.step) for each in values), strict=True)  # type: ignore[union-attr]
            return Range(*(self.value(row, what) for row in parts))
        if isinstance(first, Function) and all(
            isinstance(each, Function) and each.tree is first.tree for each in values
        ):
            return self._function(values, what)  # type: ignore[arg-type]
        if any(isinstance(each, Lazy) for each in values) and (part := self.part(values, what)) is not None:
            return part
        objects = self._fixed(values)
        if objects is not None:
            return self._one_of(objects, what)
        if all(isinstance(each, Bound) for each in values) and len({_function_of(each) for each in values}) == 1:
            receiver = self.value([each.receiver for each in values], what)  # type: ignore[union-attr]
            return receiver if isinstance(receiver, Undefined) else Bound(first.function, receiver)  # type: ignore[union-attr]
        return self.unmet(values, what)

    def _fixed(self, values: Sequence[Value]) -> list[Ref | OneOf] | None:
        """Values as one of several objects may be, in all states."""
        found = [
            self.reader.in_state(s, lambda v=v: self.reader.fixed([v]))
            for s, v in zip(self.states, values, strict=True)
        ]
        if None in found:
            return None
        for state in self.states:
            self.reader.in_state(state, lambda: self.reader.fixed(values))
        return [row[0] for row in found]

    def _same(self, value: Value, what: str) -> Value:
        """A value that is the same on all ways; the objects that it leads to are joined."""
        match value:
            case Tuple(items, cls):
                return Tuple(tuple(self.value([each] * len(self.states), what) for each in items), cls)
            case Lazy(parts=parts):
                parts = tuple(self.value([each] * len(self.states), what) for each in parts)
                return replace(value, parts=parts)
            case Generator(first=first):
                return replace(value, first=self.value([first] * len(self.states), what))
            case Function() if value.defaults or value.keyword_defaults:
                return self._function([value] * len(self.states), what)
            case Bound(function, receiver):
                return Bound(function, self.value([receiver] * len(self.states), what))
            case View(base):
                base = self.value([base] * len(self.states), what)
                return base if isinstance(base, Undefined) else replace(value, base=base, seen=None)
            case Optional(there, content):
                found = self.value([content] * len(self.states), what)
                return found if isinstance(found, Undefined) else Optional(there, found)
            case OneOf(index, items):
                refs = [self.value([each] * len(self.states), what) for each in items]
                lost = next((each for each in refs if isinstance(each, Undefined)), None)
                return lost or OneOf(index, tuple(refs))  # type: ignore[arg-type]
        return value

    def _function(self, values: Sequence[Function], what: str) -> Value:
        """A function that was made on several ways: its defaults may differ."""
        first = values[0]
        if any(each.frame is not first.frame or each.live is not first.live for each in values):
            return self.unmet(values, what)
        defaults = [self.value(row, what) for row in zip(*(each.defaults for each in values), strict=True)]
        names = list(first.keyword_defaults)
        keyword = {name: self.value([each.keyword_defaults[name] for each in values], what) for name in names}
        return replace(first, defaults=tuple(defaults), keyword_defaults=keyword)

    def number(self, values: Sequence[Value], types: Sequence[TensorType], what: str) -> Value:
        """A variable that has another value on each way."""
        try:
            type_ = self.reader.joined(types)
        except ConflictError as error:
            return Undefined(
                "PCB301",
                f"{quoted(what)} is {types[0]} on one path and {types[-1]} on another: {self.reader.conflict(error)}",
                help="give it the same type on each path, or another name on one",
            )
        lane = Lane(self.reader.emitter.fresh(type_, hint_of(what)), type_)
        self.copies.append((lane, tuple(values)))
        if type_.shape:
            sources = [
                self.reader.in_state(state, lambda value=value: self.reader.origins_of(value))
                for state, value in zip(self.states, values, strict=True)
            ]
            self.out.origins[lane.name] = frozenset().union(*sources)
        return lane

    def _word(self, values: Sequence[Value], what: str) -> Value:
        number = Lane(self.reader.emitter.fresh(NUMBER, what if what.isidentifier() else "word"), NUMBER)
        self.copies.append((number, tuple(map(self.reader.number_of, values))))
        return Choice(number, self.reader.numbers_of(values))

    def _object(self, key: Sequence[int], what: str) -> Value:
        numbers = tuple(key)
        if numbers in self.cells:
            return self.cells[numbers]
        is_identical = len(set(numbers)) == 1
        cells = [state.heap[number] for state, number in zip(self.states, numbers, strict=True)]
        are_values = all(cell.is_held for cell in cells) and are_alike(cells)
        if not is_identical and not are_values and not self._is_one(numbers):
            if all(state.heap[number].kind == "array" for state, number in zip(self.states, numbers, strict=True)):
                types = [
                    self.reader.in_state(state, lambda n=number: self.reader.type_of(Ref(n)))
                    for state, number in zip(self.states, numbers, strict=True)
                ]
                return self.number([Ref(number) for number in numbers], types, what)
            return self._one_of([Ref(number) for number in numbers], what)
        if not are_alike(cells):
            return self.unlike(numbers, cells, what)
        if cells[0].kind == "object" and any(cell is not cells[0] for cell in cells):
            cells = self._completed(cells, what)
        if is_identical:
            ref = Ref(numbers[0])
        else:
            self.reader.cells += 1
            ref = Ref(self.reader.cells)
        self.cells[numbers] = ref
        self.out.heap[ref.cell] = cells[0]
        parts = [dict(cell.parts()) for cell in cells]
        content = {k: self.value([each[k] for each in parts], _part(what, cells[0], k)) for k in parts[0]}
        if cells[0].kind == "array" and isinstance(content[0], Lane):
            self.out.hold(content[0].name, zip(self.states, cells, strict=True))
        if all(cell is cells[0] for cell in cells) and all(is_same(content[k], part) for k, part in parts[0].items()):
            return ref  # nobody has changed it
        version = max(cell.version for cell in cells) + (len({cell.version for cell in cells}) > 1)
        items = content if isinstance(cells[0].items, dict) else tuple(content.values())
        made = replace(cells[0], items=items, version=version)
        is_held, is_spread = (any(each) for each in zip(*((c.is_held, c.is_spread) for c in cells), strict=True))
        home = self._home([cell.home for cell in cells])
        self.out.heap[ref.cell] = replace(made, is_held=is_held, is_spread=is_spread, home=home)
        return ref

    def _home(self, homes: Sequence[Home | None]) -> Home | None:
        """The place in rows of an element that has been read from there on all ways, and is there as it is now."""
        first = homes[0]
        if first is None:
            return None
        rows = [state.heap.get(first.rows.cell) for state in self.states]
        places = zip(homes, rows, strict=True)
        if not all(home == replace(first, version=cell.version) for home, cell in places if cell is not None):
            return None
        versions = [cell.version for cell in rows if cell is not None]
        is_there = len(versions) == len(rows)
        return replace(first, version=max(versions) + (len({*versions}) > 1)) if is_there else None

    def _completed(self, cells: Sequence[Cell], what: str) -> list[Cell]:
        """Objects of one class with all attributes that any has: what one lacks is the class's, or not assigned."""
        ways = [*zip(self.states, cells, strict=True)]
        has = [(key, [key in cell.items for cell in cells]) for key in dict.fromkeys(k for c in cells for k in c.items)]
        keys = [k for k, known in has if all(known) or not all(computes_again(k, ways[0], way) for way in ways[1:])]
        found = []
        for cell in cells:
            items = {key: cell.items.get(key) or self._missing(cell, key, what) for key in keys}
            found.append(replace(cell, items=items))
        return found

    def _missing(self, cell: Cell, name: str, what: str) -> Value:
        assert cell.cls is not None
        return self.reader.class_value(cell.cls, name) or unassigned(f"{what}.{name}")

    def unlike(self, numbers: tuple[int, ...], cells: Sequence[Cell], what: str) -> Value:
        """An object that has another structure on each way."""
        self.reader.refuse_rows(cells)
        are_lists = all(cell.kind == "list" for cell in cells)
        help = ONE_LENGTH if are_lists else "give it the same structure on each path"
        return Undefined("PCB301", unlike(cells, what), help=help, wants=sites_of(cells))

    def _one_of(self, values: Sequence[Ref | OneOf], what: str) -> Value:
        """One of several objects: one that is made on one way is there on the others, too, and nobody's."""
        every = list(dict.fromkeys(ref for each in values for ref in refs_of(each)))
        kinds = {self.states[0].heap[ref.cell].kind for ref in every}
        if len(kinds - {"fixed"}) > 1:
            return self.unmet(values, what)
        for ref in every:
            if isinstance(found := self.value([ref] * len(self.states), what), Undefined):
                return found
        type_ = TensorType("int32")
        hint = f"which_{what}" if what.isidentifier() else "which"
        index = Lane(self.reader.emitter.fresh(type_, hint, is_made=True), type_)
        places = [
            self._at_end(way, lambda value=value: self.reader.place_among(value, every))
            for way, value in enumerate(values)
        ]
        self.copies.append((index, tuple(places)))
        return OneOf(index, tuple(every))

    def _at_end(self, way: int, what: Any) -> Value:
        """Return what `what()` gives, written at the end of one of the ways."""
        block, state = self.ends[way]
        before = self.reader.emitter.current
        self.reader.emitter.enter(block)
        try:
            found: Value = self.reader.in_state(state, what)
        finally:
            self.reader.emitter.enter(before)
        return found

    def unmet(self, values: Sequence[Value], what: str) -> Value:
        """Values of kinds that do not meet."""
        kinds = [
            self.reader.in_state(state, lambda value=value: self.reader.described(value))
            for state, value in zip(self.states, values, strict=True)
        ]
        cells = [s.heap[v.cell] for s, v in zip(self.states, values, strict=True) if isinstance(v, Ref)]
        parts = tuple(each.site for each in values if isinstance(each, Lazy) and each.site is not None)
        return replace(of_kinds(values, kinds, what), wants=(*sites_of(cells), *parts))


def _are_one_part(values: Sequence[Value]) -> bool:
    """Tell whether values are the same part of objects."""
    first = values[0]
    if not isinstance(first, View) or not all(isinstance(each, View) and each.steps == first.steps for each in values):
        return False
    bases = [each.base for each in values]  # type: ignore[union-attr]
    return all(isinstance(each, Ref) for each in bases) or _are_one_part(bases)


def _in_all(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is the same in all of some mappings."""
    return {key: value for key, value in rows[0].items() if all(row.get(key) == value for row in rows[1:])}


def _function_of(value: Any) -> Any:
    return value.function if isinstance(value.function, str) else id(value.function.tree)


def _part(what: str, cell: Cell, key: Any) -> str:
    if cell.kind == "array":
        return what
    return f"{what}[{key!r}]" if cell.kind in ("list", "dict", "set") else f"{what}.{key}"
