"""The head of a loop: the variables that each turn gives new values.

They are found by comparing the end of a turn with its beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pcbatch.errors import Diagnostic, Note, Span
from pcbatch.ir.joins import ConflictError
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import NeedsConstantError
from pcbatch.reading.counters import Counters
from pcbatch.reading.state import State
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
    is_same,
)

Path = tuple[Any, ...]
"""Where a value is: a variable ("n", frame, name, ..) or a part of an object ("c", cell, key, ..), items of tuples."""


@dataclass(frozen=True)
class Celled:
    """A path of the head at which an array is an object that changes."""


@dataclass(frozen=True)
class Stale:
    """A path at which what a view held before is not what it holds in the next turn."""


@dataclass(frozen=True)
class Chosen:
    """A path at which one of several objects stands."""

    cells: tuple[int, ...]


Phi = TensorType | Celled | Stale | Chosen | Undefined


class Head:
    """The head of a loop: at `phis` it has variables of its own, which each turn gives new values."""

    def __init__(self, reader: Counters, phis: dict[Path, Phi]):
        self.reader, self.phis = reader, phis
        self.lanes: dict[Path, Lane] = {}
        self.state = State()
        self.moves: list[tuple[Lane, Value]] = []
        self.new: dict[Path, Phi] = {}
        self.pairs: dict[int, int] = {}
        self.back: dict[int, int] = {}

    # -- going in ------------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Give the head's variables their first values, at the end of the block before the loop."""
        reader = self.reader
        for path, phi in self.phis.items():
            if isinstance(phi, Celled):
                value = value_at(reader.state, path)
                if isinstance(value, Lane) and value.name in reader.types:
                    reader.celled(value)
                elif isinstance(value, Lane | Host):
                    lane = reader.lane(value, hint=_hint(path))
                    fresh = reader.new("array", (lane,))
                    put_at(reader.state, path, fresh)
        first: list[tuple[Path, Value]] = []
        for path, phi in self.phis.items():
            if path[0] == "v":
                cell = reader.state.heap[path[1]]
                reader.state.heap[path[1]] = replace(cell, version=cell.version + 1)
                continue
            value = value_at(reader.state, path)
            match phi:
                case TensorType():
                    lane = Lane(reader.emitter.fresh(phi, _hint(path)), phi)
                    reader.give(lane.name, value, phi)
                    self.lanes[path] = lane
                    is_content = path[0] == "c" and reader.state.heap[path[1]].kind == "array"
                    if phi.shape and not is_content:
                        reader.state.origins[lane.name] = frozenset(reader.shares(value))
                    first.append((path, lane))
                case Undefined():
                    first.append((path, phi))
                case Stale():
                    assert isinstance(value, View)
                    first.append((path, replace(value, seen=None)))
                case Chosen(cells):
                    type_ = TensorType("int32")
                    index = Lane(reader.emitter.fresh(type_, "which"), type_)
                    reader.give(index.name, _place_in(value, cells), type_)
                    self.lanes[path] = index
                    first.append((path, OneOf(index, tuple(map(Ref, cells)))))
        for path, value in first:
            put_at(reader.state, path, value)

    # -- coming back ---------------------------------------------------------------------------------------------------

    def compared(self, state: State) -> dict[Path, Phi]:
        """What the head must be wider in, after a turn that ended in `state`."""
        self.behind = state
        self.moves, self.new, self.pairs, self.back = [], {}, {}, {}
        for name, value in self.state.names.items():
            now = state.names.get(name)
            path = ("n", *name)
            if now is None:
                if not isinstance(value, Undefined):
                    self.new[path] = Undefined("PCB201", f"`{name[1]}` may be read before it is assigned")
                continue
            self._compare(path, value, now)
        return self.new

    def _compare(self, path: Path, head: Value, now: Value) -> None:
        reader = self.reader
        if isinstance(head, Undefined):
            return
        if isinstance(now, Undefined):
            self.new[path] = now
            return
        if path in self.phis and isinstance(self.phis[path], TensorType):
            assert isinstance(head, Lane)
            self._number(path, head, now)
            return
        if isinstance(head, Ref) and isinstance(now, Ref):
            self._objects(path, head, now)
            return
        if isinstance(head, OneOf) and path in self.phis:
            self._chosen(path, head, now)
            return
        is_one_part = isinstance(head, View) and isinstance(now, View) and head.steps == now.steps
        if is_one_part and isinstance(head.base, Lane) and isinstance(now.base, Ref):  # type: ignore[union-attr]
            self.new[(*path, "base")] = Celled()
            return
        if isinstance(head, View) and isinstance(now, View) and is_same(head, now):
            if head.seen is not None and head.seen != self._held(now.base):
                self.new[path] = Stale()
            return
        if is_same(head, now):
            return
        if isinstance(head, Tuple) and isinstance(now, Tuple) and is_alike(head, now):
            for place, (a, b) in enumerate(zip(head.items, now.items, strict=True)):
                self._compare((*path, place), a, b)
            return
        if isinstance(head, Range) and isinstance(now, Range):
            for key, a, b in zip(("start", "stop", "step"), _parts(head), _parts(now), strict=True):
                self._compare((*path, key), a, b)
            return
        if isinstance(head, Bound) and isinstance(now, Bound):
            self._compare((*path, "receiver"), head.receiver, now.receiver)
            return
        are_functions = isinstance(head, Function) and isinstance(now, Function)
        if are_functions and head.tree is now.tree and head.frame is now.frame:  # type: ignore[union-attr]
            return
        own, other = (self._type(s, v) for s, v in ((self.state, head), (self.behind, now)))
        if own is not None and other is not None:
            is_object = isinstance(now, Ref) and self.behind.heap[now.cell].kind == "array"
            if isinstance(head, Lane) and is_object and path not in self.phis:
                self.new[path] = Celled()
                return
            try:
                self.new[path] = reader.joined([own, other])
            except ConflictError as error:
                self.new[path] = self._moving(
                    path, f"is {own} before a turn and {other} after it: {reader.conflict(error)}"
                )
            return
        if isinstance(head, Ref | OneOf) and isinstance(now, Ref | OneOf):
            self._several(path, head, now)
            return
        kinds = [
            reader.in_state(s, lambda v=v: reader.described(v)) for s, v in ((self.state, head), (self.behind, now))
        ]
        self.new[path] = self._moving(path, f"is {kinds[0]} before a turn and {kinds[1]} after it")

    def _moving(self, path: Path, why: str) -> Undefined:
        place: Span | None = self.reader.span()
        spans = () if place is None else ((place, "here"),)
        return Undefined("PCB301", f"`{_hint(path)}` {why}", spans, turns=True)

    def _type(self, state: State, value: Value) -> TensorType | None:
        return self.reader.in_state(state, lambda: self.reader.type_of(value))

    def _held(self, value: Value) -> Any:
        return self.reader.in_state(self.behind, lambda: self.reader.held(value))

    def _number(self, path: Path, head: Lane, now: Value) -> None:
        if path not in self.lanes:
            return
        type_ = self._type(self.behind, now)
        if type_ is None:
            kind = self.reader.in_state(self.behind, lambda: self.reader.described(now))
            self.new[path] = self._moving(path, f"is {head.type} before a turn and {kind} after it")
            return
        try:
            joined = self.reader.joined([head.type, type_])
        except ConflictError as error:
            self.new[path] = self._moving(
                path, f"is {head.type} before a turn and {type_} after it: {self.reader.conflict(error)}"
            )
            return
        if joined != head.type:
            self.new[path] = joined
            return
        self.moves.append((head, now))

    def _objects(self, path: Path, head: Ref, now: Ref) -> None:
        known = self.pairs.get(head.cell)
        if known == now.cell:
            return
        one, other = self.state.heap[head.cell], self.behind.heap[now.cell]
        if known is not None or self.back.get(now.cell, head.cell) != head.cell:
            self._several(path, head, now)
            return
        self.pairs[head.cell], self.back[now.cell] = now.cell, head.cell
        if one.kind != other.kind or one.cls is not other.cls:
            self.new[path] = self._moving(path, "is an object of another kind after a turn")
            return
        mine, theirs = dict(one.parts()), dict(other.parts())
        if list(mine) != list(theirs):
            if one.kind == "list":
                why = f"has {len(mine)} elements before a turn and {len(theirs)} after it"
                self.new[path] = replace(
                    self._moving(path, why),
                    help="a list has one length at each place; let all lanes append equally often, "
                    "`for k in range(4):`, else take `pcbatch.bounded(shape, dtype, capacity)`, or an array of the "
                    "largest size, `a[n] = v`, and count in `n`",
                )
            else:
                self.new[path] = self._moving(path, "has other entries before a turn than after it")
            raise NeedsTurnsError(self.new[path])
        if one.version != other.version and ("v", head.cell) not in self.phis:
            self.new["v", head.cell] = Stale()
        for key, value in mine.items():
            self._compare(("c", head.cell, key), value, theirs[key])

    def _several(self, path: Path, head: Value, now: Value) -> None:
        """A path at which one of several objects stands."""
        cells = list(dict.fromkeys([*_cells(head), *_cells(now)]))
        if not all(cell in self.state.heap and cell in self.behind.heap for cell in cells):
            type_ = self._type(self.state, head)
            if type_ is not None and type_ == self._type(self.behind, now):
                self.new[path] = type_
                return
            self.new[path] = self._moving(path, "is another object after a turn, and both have other names")
            return
        if all(self.state.heap[cell].kind == "array" for cell in cells):
            type_ = self._type(self.state, head)
            if type_ is not None:
                self.new[path] = type_
                return
        self.new[path] = Chosen(tuple(cells))

    def _chosen(self, path: Path, head: OneOf, now: Value) -> None:
        cells = [ref.cell for ref in head.items]
        if not isinstance(now, Ref | OneOf):
            self.new[path] = self._moving(path, "is no object after a turn")
            return
        if not set(_cells(now)) <= set(cells):
            self._several(path, head, now)
            return
        for cell in cells:
            self._objects(("c*", cell), Ref(cell), Ref(cell))
        self.moves.append((self.lanes[path], _place_in(now, tuple(cells))))

    def close(self) -> None:
        """Give the head's variables the values that a turn has left, all at once."""
        reader = self.reader
        targets = {lane.name for lane, _ in self.moves}
        values = []
        for lane, value in self.moves:
            found = reader.read(value)
            if isinstance(found, Lane) and found.name == lane.name:
                continue
            if isinstance(found, Lane) and found.name in targets:
                kept = Lane(reader.emitter.fresh(found.type, lane.name), found.type)
                reader.give(kept.name, found, found.type)
                found = kept
            values.append((lane, found))
        for lane, found in values:
            reader.give(lane.name, found, lane.type)


class NeedsTurnsError(NeedsConstantError):
    """A container has another length, or other entries, after each turn."""

    def __init__(self, found: Phi):
        assert isinstance(found, Undefined)
        notes = tuple(Note(span, label) for span, label in found.spans[1:])
        place = found.spans[0][0] if found.spans else None
        super().__init__(Diagnostic(found.code, found.why, place, "", found.help, notes))


def is_alike(a: Tuple, b: Tuple) -> bool:
    """Whether two tuples have one class and one length."""
    return a.cls is b.cls and len(a.items) == len(b.items)


def _cells(value: Value) -> list[int]:
    if isinstance(value, OneOf):
        return [ref.cell for ref in value.items]
    assert isinstance(value, Ref)
    return [value.cell]


def _place_in(value: Value, cells: tuple[int, ...]) -> Value:
    """Which of several objects `value` is."""
    if isinstance(value, Ref):
        return Host(cells.index(value.cell))
    assert isinstance(value, OneOf)
    if tuple(ref.cell for ref in value.items) == cells[: len(value.items)]:
        return value.index
    raise AssertionError("objects in another order")


def _parts(value: Range) -> tuple[Value, Value, Value]:
    return value.start, value.stop, value.step


def _hint(path: Path) -> str:
    names = [str(step) for step in path[2:] if isinstance(step, str)]
    return names[-1] if names and names[-1].isidentifier() else "t"


def value_at(state: State, path: Path) -> Value:
    """What is at a path."""
    value: Any
    if path[0] == "n":
        value, steps = state.names[path[1], path[2]], path[3:]
    else:
        cell = state.heap[path[1]]
        value, steps = cell.items[path[2]], path[3:]
    for step in steps:
        value = value.items[step] if isinstance(step, int) else getattr(value, step)
    return value


def put_at(state: State, path: Path, new: Value) -> None:
    """Put a value at a path."""

    def within(value: Any, steps: Path) -> Any:
        if not steps:
            return new
        step, *rest = steps
        if isinstance(step, int):
            items = list(value.items)
            items[step] = within(items[step], tuple(rest))
            return replace(value, items=tuple(items))
        return replace(value, **{step: within(getattr(value, step), tuple(rest))})

    if path[0] == "n":
        name = path[1], path[2]
        state.names[name] = within(state.names[name], path[3:])
        return
    cell = state.heap[path[1]]
    state.heap[path[1]] = cell.with_parts(lambda key, value: within(value, path[3:]) if key == path[2] else value)
