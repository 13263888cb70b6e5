"""Where ways through a program meet: one state of several, and the copies that each way makes before it gets there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pcbatch.ir.joins import ConflictError
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import Core
from pcbatch.reading.emitter import OpenBlock
from pcbatch.reading.state import Cell, Name, State
from pcbatch.reading.values import (
    Bound,
    Function,
    Host,
    Lane,
    OneOf,
    Range,
    Ref,
    Tuple,
    Undefined,
    Value,
    View,
    is_number,
    is_same,
)

End = tuple[OpenBlock, State]
"""A block that has no terminator yet, and what is known at its end."""


def unassigned(name: str) -> Undefined:
    """A variable that has no value on some way."""
    return Undefined(
        "PCB201",
        f"`{name}` may be read before it is assigned",
        help=f"assign `{name}` on every path, for example before the branch or the loop",
    )


class Joins(Core):
    """Joins of states."""

    def join(self, ends: Sequence[End], span_node: Any = None) -> None:
        """Go on where all `ends` meet; nowhere if there are none."""
        if not ends:
            self.emitter.enter(None)
            return
        if len(ends) == 1:
            block, self.state = ends[0]
            self.emitter.enter(block)
            return
        meeting = _Meeting(self, ends)
        state = meeting.state()
        target = self.emitter.block()
        for place, (block, own) in enumerate(ends):
            self.emitter.enter(block)
            self.state = own
            for lane, values in meeting.copies:
                self.give(lane.name, values[place], lane.type)
            self.emitter.jump(target, self.span())
        self.emitter.enter(target)
        self.state = state

    def in_state(self, state: State, what: Any) -> Any:
        """What `what()` finds out in another state."""
        before, self.state = self.state, state
        try:
            return what()
        finally:
            self.state = before

    def shares(self, value: Value) -> set[str]:
        """The variables, and the objects, whose elements a value may share."""
        match value:
            case Lane(name):
                return {name, *self.state.origins.get(name, ())}
            case View(base):
                return self.shares(base)
            case Ref(cell):
                own = self.state.heap[cell]
                return {f"#{cell}"}.union(*(self.shares(each) for each in own.items)) if own.kind == "array" else set()
            case OneOf(items=items):
                return set().union(*map(self.shares, items))
        return set()

    def celled(self, value: Lane) -> Ref:
        """The array that a variable holds, as an object that can change: all that held the variable refers to it."""
        known = [cell for cell in self.state.heap if self.state.heap[cell].kind == "array"]
        for number in known:
            if self.state.heap[number].items == (value,):
                return Ref(number)
        ref = self.new("array", ())
        self.replace(lambda each: ref if isinstance(each, Lane) and each.name == value.name else None)
        self.state.heap[ref.cell] = Cell("array", (value,))
        return ref


class _Meeting:
    def __init__(self, reader: Joins, ends: Sequence[End]):
        self.reader, self.ends = reader, ends
        self.states = [state for _, state in ends]
        self.copies: list[tuple[Lane, tuple[Value, ...]]] = []
        self.cells: dict[tuple[int, ...], Ref] = {}
        self.out = State()
        self.crossed: list[dict[int, set[tuple[int, ...]]]] = []

    def state(self) -> State:
        """The state in which all meet."""
        self._cell_arrays()
        names = dict.fromkeys(name for state in self.states for name in state.names)
        self.crossed = self._crossings(names)
        for state in self.states:
            self.out.origins |= state.origins
        for name in names:
            values = [state.names.get(name) for state in self.states]
            if None in values:
                self.out.names[name] = unassigned(name[1])
            else:
                self.out.names[name] = self.value(values, name[1])  # type: ignore[arg-type]
        return self.out

    # -- arrays --------------------------------------------------------------------------------------------------------

    def _cell_arrays(self) -> None:
        """Where one way has stored into an array that another has not, it is an object on both."""
        changed = True
        while changed:
            changed = False
            for values in self._pairs():
                if not any(self._is_array_cell(state, value) for state, value in zip(self.states, values, strict=True)):
                    continue
                for state, value in zip(self.states, values, strict=True):
                    if isinstance(value, Lane) and isinstance(value.type, TensorType) and value.type.shape:
                        if self._is_variable(value):
                            self.reader.in_state(state, lambda value=value: self.reader.celled(value))
                            changed = True
                if changed:
                    break

    def _is_variable(self, value: Lane) -> bool:
        return value.name in self.reader.types

    def _is_array_cell(self, state: State, value: Value) -> bool:
        return isinstance(value, Ref) and state.heap[value.cell].kind == "array"

    def _pairs(self) -> Iterable[tuple[Value, ...]]:
        """The values that meet, as far as they have the same structure."""
        seen: set[tuple[Any, ...]] = set()
        waiting: list[tuple[Value, ...]] = []
        for name in self.states[0].names:
            if all(name in state.names for state in self.states):
                waiting.append(tuple(state.names[name] for state in self.states))
        while waiting:
            values = waiting.pop()
            yield values
            first = values[0]
            if isinstance(first, Ref) and all(isinstance(each, Ref) for each in values):
                key = tuple(each.cell for each in values)  # type: ignore[union-attr]
                if key in seen:
                    continue
                seen.add(key)
                cells = [state.heap[number] for state, number in zip(self.states, key, strict=True)]
                if _alike(cells):
                    parts = [dict(cell.parts()) for cell in cells]
                    waiting += [tuple(each[k] for each in parts) for k in parts[0]]
            elif isinstance(first, View) and all(isinstance(each, View) for each in values):
                waiting.append(tuple(each.base for each in values))  # type: ignore[union-attr]
            elif isinstance(first, Tuple) and all(
                isinstance(each, Tuple) and len(each.items) == len(first.items) for each in values
            ):
                waiting += zip(*(each.items for each in values), strict=True)  # type: ignore[union-attr]

    # -- objects -------------------------------------------------------------------------------------------------------

    def _crossings(self, names: Iterable[Name]) -> list[dict[int, set[tuple[int, ...]]]]:
        """For each way, with which objects of the others each of its objects meets."""
        found: list[dict[int, set[tuple[int, ...]]]] = [{} for _ in self.states]
        for values in self._pairs():
            if all(isinstance(each, Ref) for each in values):
                key = tuple(each.cell for each in values)  # type: ignore[union-attr]
                for place, number in enumerate(key):
                    found[place].setdefault(number, set()).add(key)
        return found

    def _is_one(self, key: tuple[int, ...]) -> bool:
        """Whether objects that meet meet with nothing else, and so are one object behind."""
        return all(len(self.crossed[place].get(number, {key})) == 1 for place, number in enumerate(key))

    def value(self, values: Sequence[Value], what: str) -> Value:
        """The value that is one of `values`, depending on the way."""
        first = values[0]
        if all(each is first for each in values) and not isinstance(first, Ref | Tuple | Bound | View | OneOf):
            return first
        undefined = next((each for each in values if isinstance(each, Undefined)), None)
        if undefined is not None:
            return undefined
        if all(isinstance(each, Ref) for each in values):
            return self._object([each.cell for each in values], what)  # type: ignore[union-attr]
        if all(is_same(first, each) for each in values[1:]):
            return self._same(first, what)
        types = [self.reader.in_state(s, lambda v=v: self.reader.type_of(v)) for s, v in zip(self.states, values, strict=True)]
        if None not in types:
            return self._number(values, types, what)
        if isinstance(first, Tuple) and all(
            isinstance(each, Tuple) and each.cls is first.cls and len(each.items) == len(first.items) for each in values
        ):
            rows = zip(*(each.items for each in values), strict=True)  # type: ignore[union-attr]
            return Tuple(tuple(self.value(row, f"{what}[{place}]") for place, row in enumerate(rows)), first.cls)
        if all(isinstance(each, Range) for each in values):
            parts = zip(*((each.start, each.stop, each.step) for each in values), strict=True)  # type: ignore[union-attr]
            return Range(*(self.value(row, what) for row in parts))
        if isinstance(first, Function) and all(isinstance(each, Function) and each.tree is first.tree for each in values):
            return self._function(values, what)  # type: ignore[arg-type]
        if all(isinstance(each, Ref | OneOf) for each in values):
            return self._one_of(values, what)
        if all(isinstance(each, Bound) for each in values) and len({_function_of(each) for each in values}) == 1:  # type: ignore[arg-type]
            receiver = self.value([each.receiver for each in values], what)  # type: ignore[union-attr]
            return receiver if isinstance(receiver, Undefined) else replace(first, receiver=receiver)  # type: ignore[type-var]
        return self._apart(values, what)

    def _same(self, value: Value, what: str) -> Value:
        """A value that is the same on all ways; the objects that it leads to are joined."""
        match value:
            case Tuple(items, cls):
                return Tuple(tuple(self.value([each] * len(self.states), what) for each in items), cls)
            case Bound(function, receiver):
                return Bound(function, self.value([receiver] * len(self.states), what))
            case View(base):
                base = self.value([base] * len(self.states), what)
                return base if isinstance(base, Undefined) else replace(value, base=base, seen=None)
            case OneOf(index, items):
                refs = [self.value([each] * len(self.states), what) for each in items]
                return OneOf(index, tuple(refs))  # type: ignore[arg-type]
        return value

    def _function(self, values: Sequence[Function], what: str) -> Value:
        """A function that was made on several ways: its defaults may differ."""
        first = values[0]
        if any(each.frame is not first.frame or each.live is not first.live for each in values):
            return self._apart(values, what)
        defaults = [self.value(row, what) for row in zip(*(each.defaults for each in values), strict=True)]
        names = list(first.keyword_defaults)
        keyword = {name: self.value([each.keyword_defaults[name] for each in values], what) for name in names}
        return replace(first, defaults=tuple(defaults), keyword_defaults=keyword)

    def _number(self, values: Sequence[Value], types: Sequence[TensorType], what: str) -> Value:
        try:
            type_ = self.reader.joined(types)
        except ConflictError as error:
            return Undefined(
                "PCB301",
                f"`{what}` is {types[0]} on one path and {types[-1]} on another: {self.reader.conflict(error)}",
            )
        lane = Lane(self.reader.emitter.fresh(type_, what if what.isidentifier() else "t"), type_)
        self.copies.append((lane, tuple(values)))
        if type_.shape:
            sources = [
                frozenset(self.reader.in_state(state, lambda value=value: self.reader.shares(value)))
                for state, value in zip(self.states, values, strict=True)
            ]
            self.out.origins[lane.name] = frozenset().union(*sources)
        return lane

    def _object(self, key: Sequence[int], what: str) -> Value:
        numbers = tuple(key)
        if numbers in self.cells:
            return self.cells[numbers]
        is_identical = len(set(numbers)) == 1
        if not is_identical and not self._is_one(numbers):
            if all(state.heap[number].kind == "array" for state, number in zip(self.states, numbers, strict=True)):
                types = [
                    self.reader.in_state(state, lambda n=number: self.reader.type_of(Ref(n)))
                    for state, number in zip(self.states, numbers, strict=True)
                ]
                return self._number([Ref(number) for number in numbers], types, what)  # type: ignore[arg-type]
            return self._one_of([Ref(number) for number in numbers], what)
        cells = [state.heap[number] for state, number in zip(self.states, numbers, strict=True)]
        if not _alike(cells):
            return Undefined("PCB301", _unlike(cells, what))
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
            self.out.origins.pop(content[0].name, None)  # it is what this object holds, and no other array
        version = max(cell.version for cell in cells) + (len({cell.version for cell in cells}) > 1)
        items = content if isinstance(cells[0].items, dict) else tuple(content.values())
        self.out.heap[ref.cell] = replace(cells[0], items=items, version=version)
        return ref

    def _one_of(self, values: Sequence[Value], what: str) -> Value:
        """One of several objects, all of which are there on every way."""
        refs = [list(each.items) if isinstance(each, OneOf) else [each] for each in values]
        every = list(dict.fromkeys(ref for row in refs for ref in row))
        if not all(isinstance(ref, Ref) and all(ref.cell in state.heap for state in self.states) for ref in every):
            return Undefined(
                "PCB205",
                f"`{what}` is one object on one path and another on another, and both have other names",
                help="copy what is to be changed, or choose by an index: `xs[k]`",
            )
        kinds = {self.states[0].heap[ref.cell].kind for ref in every}  # type: ignore[union-attr]
        if len(kinds) > 1:
            return self._apart(values, what)
        for ref in every:
            self.value([ref] * len(self.states), what)
        type_ = TensorType("int32")
        index = Lane(self.reader.emitter.fresh(type_, f"which_{what}" if what.isidentifier() else "which"), type_)
        places: list[Value] = []
        for state, value in zip(self.states, values, strict=True):
            if isinstance(value, OneOf):
                table = [every.index(ref) for ref in value.items]
                if table == list(range(len(table))):
                    places.append(value.index)
                    continue
                return self._apart(values, what)
            places.append(Host(every.index(value)))  # type: ignore[arg-type]
        self.copies.append((index, tuple(places)))
        return OneOf(index, tuple(every))  # type: ignore[arg-type]

    def _apart(self, values: Sequence[Value], what: str) -> Value:
        kinds = [
            self.reader.in_state(state, lambda value=value: self.reader.described(value))
            for state, value in zip(self.states, values, strict=True)
        ]
        return Undefined("PCB301", f"`{what}` is {kinds[0]} on one path and {kinds[-1]} on another")


def _function_of(value: Any) -> Any:
    return value.function if isinstance(value.function, str) else id(value.function.tree)


def _alike(cells: Sequence[Cell]) -> bool:
    """Whether objects have the same structure."""
    first = cells[0]
    if any(cell.kind != first.kind or cell.cls is not first.cls for cell in cells):
        return False
    if isinstance(first.items, dict):
        return all(list(cell.items) == list(first.items) for cell in cells)
    return all(len(cell.items) == len(first.items) for cell in cells)


def _unlike(cells: Sequence[Cell], what: str) -> str:
    """Why objects have no structure in common."""
    first, last = cells[0], next(cell for cell in cells if not _alike([cells[0], cell]))
    if first.kind == last.kind == "list":
        return f"`{what}` is a list of {len(first.items)} on one path and of {len(last.items)} on another"
    return f"`{what}` is an object of one structure on one path and of another on another"


def _part(what: str, cell: Cell, key: Any) -> str:
    if cell.kind == "array":
        return what
    return f"{what}_{key}" if cell.kind == "object" else f"{what}[{key!r}]"


def holds_number(value: Value) -> bool:
    """Whether a value is a number of Python's that is known."""
    return isinstance(value, Host) and is_number(value.value)
