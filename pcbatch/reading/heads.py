"""The head of a loop: the variables that each turn gives new values.

They are found by comparing the end of a turn with its beginning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pcbatch.errors import Span
from pcbatch.frontend.nodes import span_of
from pcbatch.ir.types import ConflictError, TensorType
from pcbatch.reading.counters import Counters
from pcbatch.reading.meeting import ONE_LENGTH
from pcbatch.reading.phis import (
    Celled,
    Chosen,
    Copied,
    MissingValue,
    NeedsTurnsError,
    Origins,
    Path,
    Phi,
    Stale,
    Worded,
    cells_of,
    hint_at,
    is_alike,
    is_known_better,
    outermost,
    put_at,
    unassigned,
    value_at,
)
from pcbatch.reading.several import BOOL, NUMBER
from pcbatch.reading.state import OWN, Cell, State, computes_again, inside, sites_of
from pcbatch.reading.values import (
    NONE,
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
    Tuple,
    Undefined,
    Value,
    View,
    is_none,
    is_same,
)


class Head:
    """The head of a loop: at `phis` it has variables of its own, which each turn gives new values."""

    def __init__(self, reader: Counters, phis: dict[Path, Phi]):
        self.reader, self.phis = reader, phis
        self.lanes: dict[Path, Lane] = {}
        self.origins = Origins()
        self.state, self.behind = State(), State()
        self.moves: list[tuple[Lane, Value]] = []
        self.new: dict[Path, Phi] = {}
        self.pairs: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self.paths: dict[int, Path] = {}

    # -- going in ------------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Give the head's variables their first values, at the end of the block before the loop."""
        reader = self.reader
        heaps = (phi.source.heap for phi in self.phis.values() if isinstance(phi, MissingValue))
        reader.cells = max(reader.cells, 0, *(max(heap, default=0) for heap in heaps))  # the same objects
        contents: dict[Path, Phi] = {}
        for path, phi in [*self.phis.items()]:
            if path[0] != "n" and path[1] not in reader.state.heap:
                del self.phis[path]  # of what stood in for an object in another round
            elif isinstance(phi, MissingValue):
                there, content = reader.parts_of(value_at(reader.state, path))
                flag = Lane(reader.emitter.fresh(BOOL, f"has_{hint_at(path) or 'it'}"), BOOL)
                reader.give(flag.name, there, BOOL)
                self.lanes[path] = flag
                if content is None:
                    content = reader.blank_of(phi.value, phi.source, reader.state)
                put_at(reader.state, path, reader.if_there(flag, content))
            elif isinstance(phi, Celled):
                value = value_at(reader.state, path)
                if isinstance(value, Lane) and value.name in reader.types:
                    reader.celled(value)
                elif isinstance(value, Host) and reader.is_fresh(value):
                    reader.own_of_host(value)
                elif isinstance(value, Lane | Host):
                    lane = reader.lane(value, hint=hint_at(path))
                    put_at(reader.state, path, reader.new("array", (lane,)))
                made = value_at(reader.state, path)
                if isinstance(made, Ref) and phi.content is not None:
                    contents["c", made.cell, 0] = phi.content
                    contents |= {("v", made.cell): Stale()} if phi.is_stored else {}
            elif isinstance(phi, Copied):
                value = value_at(reader.state, path)
                assert isinstance(value, Ref)
                copied = reader.new_like(reader.state.heap[value.cell])
                reader.state.pair(copied.cell, value.cell)
                put_at(reader.state, path, copied)
        self.phis = contents | self.phis
        first: list[tuple[Path, Value]] = []
        for path, phi in outermost(self.phis):
            if path[0] == "h":
                cell = reader.state.heap[path[1]]
                is_rows = reader.is_rows(Ref(path[1]))
                reader.state.heap[path[1]] = replace(cell, is_held=not is_rows, is_spread=is_rows, home=None)
                continue
            if path[0] == "v":
                cell = reader.state.heap[path[1]]
                reader.state.heap[path[1]] = replace(cell, version=cell.version + 1)
                continue
            value = value_at(reader.state, path) if not isinstance(phi, Undefined) else phi
            match phi:
                case TensorType():
                    lane = Lane(reader.emitter.fresh(phi, hint_at(path), is_made=path[0] == "c"), phi)
                    reader.refuse_taped([value])
                    reader.give(lane.name, value, phi)
                    self.lanes[path] = lane
                    holder = Ref(path[1]) if path[0] == "c" else NONE
                    if phi.shape and not reader.is_rows(holder):
                        is_own = reader.kind(holder) == "array"
                        known = reader.origins_of(value) - {getattr(value, "name", None) if is_own else None}
                        reader.state.origins[lane.name] = self.origins.of(path) | known
                    first.append((path, lane))
                case Undefined():
                    first.append((path, phi))
                case Worded(words):
                    number = Lane(reader.emitter.fresh(NUMBER, hint_at(path)), NUMBER)
                    reader.give(number.name, reader.number_of(value), NUMBER)
                    self.lanes[path] = number
                    first.append((path, Choice(number, words)))
                case Chosen(cells):
                    type_ = TensorType("int32")
                    index = Lane(reader.emitter.fresh(type_, "which", is_made=True), type_)
                    assert isinstance(value, Ref | OneOf)
                    reader.give(index.name, reader.place_among(value, [*map(Ref, cells)]), type_)
                    self.lanes[path] = index
                    first.append((path, OneOf(index, tuple(map(Ref, cells)))))
        for path, value in first:
            put_at(reader.state, path, value)
        self.origins.enter(reader.state)
        for path, phi in self.phis.items():
            if isinstance(phi, Stale) and path[0] in ("n", "c"):
                view = value_at(reader.state, path)
                assert isinstance(view, View)
                put_at(reader.state, path, replace(view, seen=None))

    # -- coming back ---------------------------------------------------------------------------------------------------

    def compared(self, state: State) -> dict[Path, Phi]:
        """Return the paths where the head must be wider, after a turn that ended in `state`."""
        self.behind = state
        self.moves, self.new, self.pairs, self.back, self.paths = [], {}, {}, {}, {}
        for name, value in self.state.names.items():
            if name[1].startswith(OWN):
                continue  # of an object whose only name is another by then nobody reads anything
            now = state.names.get(name)
            path = ("n", *name)
            if now is None:
                if not isinstance(value, Undefined):
                    self.new[path] = unassigned(name[1])
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
        is_array = isinstance(now, Ref) and self.behind.heap[now.cell].kind == "array"
        if is_array and isinstance(head, Lane) and self.behind.heap[now.cell].is_held:  # type: ignore[union-attr]
            self.new[path] = self._celled(head, now)  # type: ignore[arg-type]
            return
        if self.is_optional(head, now):
            self.absent(path, head, now)
            return
        if path in self.phis and isinstance(self.phis[path], TensorType):
            assert isinstance(head, Lane)
            self.number(path, head, now)
            return
        if isinstance(head, Ref) and isinstance(now, Ref):
            self._objects(path, head, now)
            return
        if reader.are_words([head, now]) and (path in self.lanes or not is_same(head, now)):
            self._word(path, head, now)
            return
        if isinstance(head, OneOf) and path in self.phis:
            self._chosen(path, head, now)
            return
        if isinstance(head, View) and isinstance(now, View) and self._viewed(path, head, now):
            return
        if self._compared_inside(path, head, now) or is_same(head, now):
            return
        own, other = (self._type(s, v) for s, v in ((self.state, head), (self.behind, now)))
        if own is not None and other is not None:
            if is_array and (isinstance(head, Lane) or self.reader.is_fresh(head)) and path not in self.phis:
                self.new[path] = self._celled(head, now)  # type: ignore[arg-type]
                return
            self.new[path] = self._joined(path, own, other)
            return
        if isinstance(head, Ref | OneOf) and isinstance(now, Ref | OneOf):
            self._several(path, head, now)
            return
        kinds = [
            reader.in_state(s, lambda v=v: reader.described(v)) for s, v in ((self.state, head), (self.behind, now))
        ]
        self.new[path] = self.moving(path, f"is {kinds[0]} before a turn and {kinds[1]} after it")

    def _celled(self, head: Value, now: Ref) -> Celled:
        """An array of the head that is an object after a turn: what that holds then, if it is the same array."""
        cell = self.behind.heap[now.cell]
        if not isinstance(head, Lane) or cell.variable != head.name or self._type(self.behind, now) != head.type:
            return Celled()
        return Celled(None if is_same(head, cell.items[0]) else head.type, cell.version > 0)

    def _viewed(self, path: Path, head: View, now: View) -> bool:
        """Tell whether two views are the same part of what is one array, which has been compared then."""
        if head.steps != now.steps:
            return False
        one, other = head.base, now.base
        are_views = isinstance(one, View) and isinstance(other, View) and self._viewed((*path, "base"), one, other)
        if not are_views and isinstance(other, Ref) and isinstance(one, Ref | Lane | Host):
            self._compare((*path, "base"), one, other)
        elif not are_views and not is_same(one, other):
            return False
        if head.seen is not None and head.seen != self.reader.in_state(self.behind, lambda: self.reader.held(other)):
            self.new[path] = Stale()
        return True

    def _compared_inside(self, path: Path, head: Value, now: Value) -> bool:
        """Tell whether two values are the same but for what they lead to, which has been compared then."""
        pairs: list[tuple[Any, Value, Value]]
        match head, now:
            case Tuple(), Tuple() if is_alike(head, now):
                pairs = list(zip(range(len(head.items)), head.items, now.items, strict=True))
            case Lazy(), Lazy() if head.kind == now.kind:
                places = range(3 if is_none(head.parts[-1]) else len(head.parts))  # without bounds, if these were none
                parts = (*now.parts[:3], *now.parts[1:3]) if is_none(now.parts[-1]) else now.parts
                pairs = list(zip(places, head.parts, parts, strict=False))
            case Range(), Range():
                pairs = [("start", head.start, now.start), ("stop", head.stop, now.stop), ("step", head.step, now.step)]
            case Bound(), Bound() if is_same(replace(head, receiver=NONE), replace(now, receiver=NONE)):
                pairs = [("receiver", head.receiver, now.receiver)]
            case (Generator(), Generator()) | (Function(), Function()) if is_same(head, now):
                for ref in self.state.reachable(iter(inside(head))):
                    self._unmoved(path, ref)
                return True
            case OneOf(), OneOf() if head == now:
                for ref in head.items:
                    self._unmoved(path, ref)
                return True
            case _:
                return False
        for step, a, b in pairs:
            self._compare((*path, step), a, b)
        return True

    def _unmoved(self, path: Path, value: Value) -> None:
        """Compare what a turn has made of an object that stays where it is."""
        if not isinstance(value, Ref):
            return
        if self.pairs.get(value.cell, value.cell) != value.cell or self.back.get(value.cell, value.cell) != value.cell:
            self.new[path] = self.moving(path, "leads to another object after a turn")
            return
        self._objects(("c*", value.cell), value, value)

    def moving(self, path: Path, why: str) -> Phi:
        """Return what stands at a path where values of several kinds stand in turn."""
        return self.moved(path, why)

    def moved(self, path: Path, why: str) -> Undefined:
        """Return the reason why the value at a path is of no use behind a turn."""
        place: Span | None = self.reader.span()
        spans = [] if place is None else [(place, "the loop")]
        if len(path) == 3 and path[0] == "n":
            for state, label in ((self.state, "assigned here before the loop"), (self.behind, "and here in the loop")):
                known = state.places.get(path[1:])
                if known is not None and getattr(known[0], "lineno", None) is not None:
                    spans += [(span_of(*known), label)] * (span_of(*known) not in [span for span, _ in spans])
        help = "give it one kind, before the loop and in it, or another name in the loop"
        return Undefined("PCB301", f"`{hint_at(path) or 'a value'}` {why}", tuple(spans), help, turns=True)

    def _type(self, state: State, value: Value) -> TensorType | None:
        return self.reader.in_state(state, lambda: self.reader.type_of(value))

    def number(self, path: Path, head: Lane, now: Value) -> None:
        """A variable of the head, and what it is after a turn."""
        if path not in self.lanes:
            return
        type_ = self._type(self.behind, now)
        if type_ is None:
            kind = self.reader.in_state(self.behind, lambda: self.reader.described(now))
            self.new[path] = self.moving(path, f"is {head.type} before a turn and {kind} after it")
            return
        joined = self._joined(path, head.type, type_)
        if joined != head.type:
            self.new[path] = joined
        else:
            self.moves.append((head, now))

    def _joined(self, path: Path, own: TensorType, other: TensorType) -> Phi:
        try:
            return self.reader.joined([own, other])
        except ConflictError as error:
            return self.moving(path, f"is {own} before a turn and {other} after it: {self.reader.conflict(error)}")

    def is_optional(self, head: Value, now: Value) -> bool:
        """Tell whether a value is None, in the head or after a turn, in some lanes at least."""
        is_one_none = is_none(head) != is_none(now) and not self.reader.are_words([head, now])
        return is_one_none or isinstance(head, Optional) or isinstance(now, Optional)

    def absent(self, path: Path, head: Value, now: Value) -> None:
        """A value that is None in the head or after a turn, in some lanes at least."""
        reader = self.reader
        (is_head, own), (is_now, other) = (
            reader.in_state(s, lambda v=v: reader.parts_of(v)) for s, v in ((self.state, head), (self.behind, now))
        )
        if isinstance(self.phis.get(path), MissingValue):
            self.moves.append((self.lanes[path], is_now))
        elif not is_same(is_head, is_now):
            value, source = (own, self.state) if other is None else (other, self.behind)
            self.new[path] = MissingValue(value, source.copy())
            return
        if own is not None and other is not None:
            self._compare((*path, "content") if isinstance(head, Optional) else path, own, other)

    def _word(self, path: Path, head: Value, now: Value) -> None:
        words, known = self.reader.numbers_of([head, now]), self.phis.get(path)
        if isinstance(known, Worded) and set(words) <= set(known.words):
            self.moves.append((self.lanes[path], self.reader.number_of(now)))
        else:
            self.new[path] = Worded(words)

    def _objects(self, path: Path, head: Ref, now: Ref) -> None:
        known = self.pairs.get(head.cell)
        if known == now.cell:
            return
        one, other = self.state.heap[head.cell], self.behind.heap[now.cell]
        are_values = one.is_held and other.is_held
        if known is not None or (self.back.get(now.cell, head.cell) != head.cell and not are_values):
            self._several(path, head, now)
            return
        self.pairs[head.cell], self.back[now.cell], self.paths[head.cell] = now.cell, head.cell, path
        if one.kind != other.kind or one.cls is not other.cls:
            self.reader.refuse_rows([one, other])
            self.changed_kind(path, head, sites_of([one, other]))
            return
        if ("h", head.cell) not in self.phis and is_known_better(one, other):
            self.new["h", head.cell] = Stale()
        mine, theirs = dict(one.parts()), dict(other.parts())
        if one.kind == "object":
            for name in mine.keys() ^ theirs.keys():
                again = name not in mine and computes_again(name, (self.state, one), (self.behind, other))
                if not again and not isinstance(mine.get(name), Undefined):
                    self.new["c", head.cell, name] = unassigned(f"{hint_at(path)}.{name}")
        elif list(mine) != list(theirs):
            self.restructured(path, head, (one, other))
            return
        if one.version != other.version and ("v", head.cell) not in self.phis:
            self.new["v", head.cell] = Stale()
        for key, value in mine.items():
            if key in theirs:
                self._compare(("c", head.cell, key), value, theirs[key])

    def changed_kind(self, path: Path, head: Ref, wants: tuple[Any, ...]) -> None:
        """An object that is of another kind after a turn."""
        found = self.moving(path, "is an object of another kind after a turn")
        self.new[path] = replace(found, wants=wants) if isinstance(found, Undefined) else found

    def restructured(self, path: Path, head: Ref, cells: tuple[Cell, Cell]) -> None:
        """A container that has other entries after a turn."""
        if cells[0].kind == "list":
            before, after = (len(cell.items) for cell in cells)
            why, help = f"has {before} elements before a turn and {after} after it", ONE_LENGTH
        else:
            why, help = "has other entries before a turn than after it", ""
        raise NeedsTurnsError(replace(self.moved(path, why), help=help, wants=sites_of(cells)))

    def _several(self, path: Path, head: Value, now: Value) -> None:
        """A path at which one of several objects stands."""
        if self._goes_apart(path, head, now):
            return
        cells = list(dict.fromkeys([*cells_of(head), *cells_of(now)]))
        type_ = self._type(self.state, head)
        if not all(cell in self.state.heap and cell in self.behind.heap for cell in cells):
            other = self.moving(path, "is another object after a turn, and both have other names")
            self.new[path] = other if type_ is None or type_ != self._type(self.behind, now) else type_
        elif type_ is not None and all(self.state.heap[cell].kind == "array" for cell in cells):
            self.new[path] = type_
        else:
            self.new[path] = Chosen(tuple(cells))

    def _goes_apart(self, path: Path, head: Value, now: Value) -> bool:
        """Return whether two names of one object may name two after a turn, one of them new."""
        if not isinstance(head, Ref):
            return False
        after = {path: cells_of(now)}
        if head.cell in self.pairs:
            after[self.paths[head.cell]] = [self.pairs[head.cell]]
        for place, cells in after.items():
            if place not in self.phis and any(cell not in self.state.heap for cell in cells):
                self.new[place] = Copied()
                return True
        return False

    def _chosen(self, path: Path, head: OneOf, now: Value) -> None:
        cells = [ref.cell for ref in head.items]
        if not isinstance(now, Ref | OneOf):
            self.new[path] = self.moving(path, "is no object after a turn")
            return
        if not set(cells_of(now)) <= set(cells):
            self._several(path, head, now)
            return
        for cell in [each for each in cells if each in self.behind.heap]:  # nobody has the others any more
            self._objects(("c*", cell), Ref(cell), Ref(cell))
        self.moves.append((self.lanes[path], self.reader.place_among(now, head.items)))

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
                kept = Lane(reader.emitter.fresh(found.type, reader.names.hint(lane.name)), found.type)
                reader.give(kept.name, found, found.type)
                found = kept
            values.append((lane, found))
        for lane, found in values:
            reader.give(lane.name, found, lane.type)
