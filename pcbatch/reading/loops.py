"""Loops: a head whose variables are widened until a turn changes nothing else, or turns that are written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gast

from pcbatch.errors import Span
from pcbatch.ir.joins import ConflictError
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import NeedsBlocksError, NeedsConstantError, RefusedError
from pcbatch.reading.expressions import Ends, Expressions
from pcbatch.reading.joins import End
from pcbatch.reading.operations import builtin
from pcbatch.reading.state import State
from pcbatch.reading.values import (
    Bound,
    Frame,
    Function,
    Host,
    Lane,
    Lazy,
    OneOf,
    Range,
    Ref,
    Tuple,
    Undefined,
    Value,
    View,
    is_same,
)

ROUNDS = 12
MOST_TURNS = 1000
"""The most turns of a loop that are written out, where that is what a refusal asks for."""
FEW_TURNS = 64
"""The most turns of a loop that are written out to see whether it can be read so."""
COUNTER = TensorType("int32", (), True)
Path = tuple[Any, ...]
"""Where a value is: a variable ("n", frame, name, ..) or a part of an object ("c", cell, key, ..), and items of tuples."""


@dataclass(eq=False)
class Loop:
    """A loop that is interpreted: the blocks that leave a turn, or all of them, early."""

    node: Any
    frame: Frame
    breaks: list[End] = field(default_factory=list)
    continues: list[End] = field(default_factory=list)


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


class Loops(Expressions):
    """Python's loops."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self.loops: list[Loop] = []
        self.settled: dict[Any, dict[Path, Phi]] = {}

    def open_ends(self) -> Iterator[list[Any]]:
        for loop in self.loops:
            yield loop.breaks
            yield loop.continues

    def statements(self, nodes: Sequence[Any]) -> None:
        """Interpret statements; see `statements`."""
        raise NotImplementedError

    # -- to a fixed point ----------------------------------------------------------------------------------------------

    def loop(
        self,
        node: Any,
        test: Callable[[], Host | Lane | Ends],
        body: Callable[[], None],
        after: Callable[[], None],
        orelse: Sequence[Any],
        phis: dict[Path, Phi],
        *,
        turns_once: bool = False,
    ) -> None:
        """Interpret a loop; with `turns_once` it is known that the first test holds."""
        if self.straight:
            raise NeedsBlocksError
        self.refuse_inside("a loop")
        key = (id(node), tuple(id(frame.function.tree) for frame in self.frames))
        phis = {**phis, **{p: phi for p, phi in self.settled.get(key, {}).items() if self._is_there(p)}}
        mark = self.mark()
        for _ in range(ROUNDS):
            head = _Head(self, phis)
            head.enter()
            start = self.emitter.block()
            self.emitter.jump(start, self.span(node))
            self.emitter.enter(start)
            head.state = self.state.copy()
            loop = Loop(node, self.frame)
            exits: list[End] = []
            self.loops.append(loop)
            try:
                if not turns_once:
                    self._tested(test, exits)
                if self.is_live:
                    body()
            finally:
                self.loops.remove(loop)
            self.join([*loop.continues, *self._here()])
            if self.is_live:
                after()
            if self.is_live and turns_once:
                self._tested(test, exits)
            if self.is_live:
                more = head.compared(self.state)
                if more:
                    phis.update(more)
                    self.back_to(mark)
                    continue
                head.close()
                self.emitter.jump(start, self.span(node), turn=True)
            self.settled[key] = phis
            if orelse and exits:
                self.join(exits)
                self.statements(orelse)
                exits = self._here()
            self.join([*exits, *loop.breaks])
            return
        moving = ", ".join(sorted({str(path[2]) for path in phis if path[0] == "n"}))
        self.refuse("PCB304", f"the types of a loop's variables do not settle: {moving}", node=node)

    def _is_there(self, path: Path) -> bool:
        """Whether there is anything at a path that was found in another round of a loop around."""
        if path[0] == "v":
            return path[1] in self.state.heap
        try:
            _value_at(self.state, path)
        except (KeyError, IndexError, AttributeError, TypeError):
            return False
        return True

    def _here(self) -> list[End]:
        return [] if self.emitter.current is None else [(self.emitter.current, self.state)]

    def _tested(self, test: Callable[[], Host | Lane | Ends], exits: list[End]) -> None:
        """Go on where the test of a loop holds, and out of it where not."""
        found = test()
        if isinstance(found, Ends):
            self.join(found.false)
            exits += self._here()
            self.join(found.true)
            return
        if not self.is_live:
            return
        if isinstance(found, Host):
            if not found.value:
                exits += self._here()
                self.emitter.enter(None)
            return
        inside, outside = self.emitter.block(), self.emitter.block()
        self.emitter.branch(found, inside, outside, self.span())
        exits.append((outside, self.state.copy()))
        self.emitter.enter(inside)

    # -- statements ----------------------------------------------------------------------------------------------------

    def while_loop(self, node: Any) -> None:
        """`while`."""
        self.loop(
            node, lambda: self.decided(node.test), lambda: self.statements(node.body), lambda: None, node.orelse, {}
        )

    def for_loop(self, node: Any) -> None:
        """`for`."""
        whole = self.expression(node.iter)
        if self.is_live:
            self.over(
                whole, node, lambda item: self.store(node.target, item), lambda: self.statements(node.body), node.orelse
            )

    def over(
        self, whole: Value, node: Any, bind: Callable[[Value], None], body: Callable[[], None], orelse: Sequence[Any]
    ) -> None:
        """A loop over `whole`: by a counter where its items are numbers or rows, else written out."""
        counted = self.counted(whole)
        if counted is None:
            self.written_out([lambda item=item: item for item in self.sequence(whole)], node, bind, body, orelse)
            return
        start, stop, step, item, turns = counted
        if turns is not None and turns <= 1:
            items = [lambda k=k: item(Host(start.value + k * step.value)) for k in range(turns)]  # type: ignore[union-attr]
            self.written_out(items, node, bind, body, orelse)
            return
        mark = self.mark()
        try:
            self._by_counter(start, stop, step, item, turns, node, bind, body, orelse)
        except RefusedError as error:
            most = MOST_TURNS if isinstance(error, NeedsConstantError) else FEW_TURNS
            if turns is None or turns > most or self.straight:
                raise
            self.back_to(mark)
            items = [lambda k=k: item(Host(start.value + k * step.value)) for k in range(turns)]  # type: ignore[union-attr]
            try:
                self.written_out(items, node, bind, body, orelse)
            except RefusedError:
                if isinstance(error, NeedsConstantError):
                    raise
                raise error from None

    def _by_counter(
        self,
        start: Value,
        stop: Value,
        step: Value,
        item: Callable[[Value], Value],
        turns: int | None,
        node: Any,
        bind: Callable[[Value], None],
        body: Callable[[], None],
        orelse: Sequence[Any],
    ) -> None:
        number = self.number()
        slots = [(self.frame.number, f"{name}_{number}") for name in ("index", "stop", "step")]
        for slot, value in zip(slots, (start, stop, step), strict=True):
            self.state.names[slot] = value
        index, bound, by = slots
        names = lambda: self.state.names  # noqa: E731
        type_ = self.type_of(start)
        phis: dict[Path, Phi] = {("n", *index): replace(type_, shape=()) if type_ is not None else COUNTER}

        def test() -> Host | Lane:
            return self.is_before(names()[index], names()[bound], names()[by])

        def turn() -> None:
            bind(item(names()[index]))
            body()

        def after() -> None:
            names()[index] = self.binary(gast.Add, names()[index], names()[by])

        self.loop(node, test, turn, after, orelse, phis, turns_once=turns is not None)
        for slot in slots:
            self.state.names.pop(slot, None)

    def is_before(self, index: Value, stop: Value, step: Value) -> Host | Lane:
        """Whether a counter has not reached the end of its range."""
        if isinstance(step, Host):
            return self.truth(self.compare(gast.Lt if step.value > 0 else gast.Gt, index, stop))
        up, down = (
            self.both(self.truth(self.compare(op, step, Host(0))), self.truth(self.compare(op, stop, index)))
            for op in (gast.Gt, gast.Lt)
        )
        return self.either(up, down)

    def written_out(
        self,
        items: Sequence[Callable[[], Value]],
        node: Any,
        bind: Callable[[Value], None],
        body: Callable[[], None],
        orelse: Sequence[Any],
    ) -> None:
        """A loop whose turns are written one behind the other."""
        breaks: list[End] = []
        for item in items:
            if not self.is_live:
                break
            loop = Loop(node, self.frame)
            self.loops.append(loop)
            try:
                bind(item())
                body()
            finally:
                self.loops.remove(loop)
            breaks += loop.breaks
            if loop.continues:
                self.join([*loop.continues, *self._here()])
        if self.is_live and orelse:
            self.statements(orelse)
        if breaks:
            self.join([*self._here(), *breaks])

    # -- what a loop goes over -----------------------------------------------------------------------------------------

    def counted(
        self, whole: Value
    ) -> tuple[Value, Value, Value, Callable[[Value], Value], int | None] | None:
        """Start, end and step of the counter of a loop, the item at each, and how many turns if that is known.

        None for what is written out: lists, tuples, dicts.
        """
        whole = self.known(whole)
        if isinstance(whole, Host) and isinstance(whole.value, range):
            own = whole.value
            return Host(own.start), Host(own.stop), Host(own.step), lambda index: index, len(own)
        if isinstance(whole, Range):
            return whole.start, whole.stop, whole.step, lambda index: index, None
        if isinstance(whole, Lazy):
            length = self.lazy_length(whole)
            if length is None:
                return None
            turns = length.value if isinstance(length, Host) else None
            slot = (self.frame.number, f"over_{self.number()}")
            self.state.names[slot] = whole
            return Host(0), length, Host(1), lambda index: self.lazy_item(self.state.names[slot], index), turns
        type_ = self.type_of(whole)
        if type_ is not None and type_.shape:
            slot = (self.frame.number, f"over_{self.number()}")
            self.state.names[slot] = whole
            size = type_.shape[0]
            return Host(0), Host(size), Host(1), lambda index: self.row_of(self.state.names[slot], index), size
        if self.is_bounded(whole):
            slot = (self.frame.number, f"over_{self.number()}")
            self.state.names[slot] = whole
            length = self.length(whole)
            return Host(0), length, Host(1), lambda index: self.item(self.state.names[slot], index), None
        return None

    def is_bounded(self, value: Value) -> bool:
        """Whether a value is a bounded list; see `objects`."""
        raise NotImplementedError

    def row_of(self, array: Value, index: Value) -> Value:
        """A row of an array at a counter, which is in range."""
        return self.element(array, index)

    def lazy_length(self, whole: Value) -> Value | None:
        """How many items a loop takes from this; None where they are written out."""
        match whole:
            case Lazy("zip", parts):
                lengths = [self.lazy_length(each) for each in parts]
                if None in lengths:
                    return None
                known = [each.value for each in lengths if isinstance(each, Host)]
                lanes = [each for each in lengths if not isinstance(each, Host)]
                if not lanes:
                    return Host(min(known))
                every = [*lanes, *([Host(min(known))] if known else [])]
                found = every[0]
                for each in every[1:]:
                    found = self.emit(builtin("min"), [self.pattern(found), self.pattern(each)])  # type: ignore[arg-type]
                return found
            case Lazy(_, parts):
                return self.lazy_length(parts[0])
            case Range():
                return self.range_length(whole)
            case Host(value) if isinstance(value, range):
                return Host(len(value))
        if self.is_bounded(whole):
            return self.length(whole)
        type_ = self.type_of(whole)
        return Host(type_.shape[0]) if type_ is not None and type_.shape else None

    def lazy_item(self, whole: Value, index: Value) -> Value:
        """The item at a counter of what a loop goes over."""
        match whole:
            case Lazy("zip", parts):
                return Tuple(tuple(self.lazy_item(each, index) for each in parts))
            case Lazy("enumerate", (part, start)):
                return Tuple((self.binary(gast.Add, index, start), self.lazy_item(part, index)))
            case Lazy("reversed", (part,)):
                length = self.lazy_length(part)
                assert length is not None
                last = self.binary(gast.Sub, length, Host(1))
                return self.lazy_item(part, self.binary(gast.Sub, last, index))
            case Range(start, _, step):
                return self.binary(gast.Add, start, self.binary(gast.Mult, index, step))
            case Host(value) if isinstance(value, range):
                if isinstance(index, Host):
                    return Host(value[index.value])
                scaled = index if value.step == 1 else self.binary(gast.Mult, index, Host(value.step))
                return scaled if value.start == 0 else self.binary(gast.Add, Host(value.start), scaled)
        if self.is_bounded(whole):
            return self.item(whole, index)
        return self.row_of(whole, index)

    def range_length(self, value: Range) -> Value:
        """How many numbers a range has."""
        span = self.binary(gast.Sub, value.stop, value.start)
        if not (isinstance(value.step, Host) and value.step.value == 1):
            is_up = self.truth(self.compare(gast.Gt, value.step, Host(0)))
            if isinstance(is_up, Host):
                sign: Value = Host(1 if is_up.value else -1)
            else:
                sign = self.choose(is_up, lambda: Host(1), lambda: Host(-1))
            shifted = self.binary(gast.Add, span, self.binary(gast.Sub, value.step, sign))
            span = self.binary(gast.FloorDiv, shifted, value.step)
        return self.emit(builtin("max"), [self.pattern(span), 0])


class _Head:
    """The head of a loop: at `phis` it has variables of its own, which each turn gives new values."""

    def __init__(self, reader: Loops, phis: dict[Path, Phi]):
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
                value = _value_at(reader.state, path)
                if isinstance(value, Lane) and value.name in reader.types:
                    reader.celled(value)
                elif isinstance(value, Lane | Host):
                    lane = reader.lane(value, hint=_hint(path))
                    fresh = reader.new("array", (lane,))
                    _put(reader.state, path, fresh)
        first: list[tuple[Path, Value]] = []
        for path, phi in self.phis.items():
            if path[0] == "v":
                cell = reader.state.heap[path[1]]
                reader.state.heap[path[1]] = replace(cell, version=cell.version + 1)
                continue
            value = _value_at(reader.state, path)
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
            _put(reader.state, path, value)

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
        if isinstance(head, View) and isinstance(now, View) and head.steps == now.steps:
            if isinstance(head.base, Lane) and isinstance(now.base, Ref):
                self.new[*path, "base"] = Celled()
                return
        if isinstance(head, View) and isinstance(now, View) and is_same(head, now):
            if head.seen is not None and head.seen != self._held(now.base):
                self.new[path] = Stale()
            return
        if is_same(head, now):
            return
        if isinstance(head, Tuple) and isinstance(now, Tuple):
            if head.cls is now.cls and len(head.items) == len(now.items):
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
        if isinstance(head, Function) and isinstance(now, Function) and head.tree is now.tree:
            if head.frame is now.frame:
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
                self.new[path] = self._moving(path, f"is {own} before a turn and {other} after it: {reader.conflict(error)}")
            return
        if isinstance(head, Ref | OneOf) and isinstance(now, Ref | OneOf):
            self._several(path, head, now)
            return
        kinds = [reader.in_state(s, lambda v=v: reader.described(v)) for s, v in ((self.state, head), (self.behind, now))]
        self.new[path] = self._moving(path, f"is {kinds[0]} before a turn and {kinds[1]} after it")

    def _moving(self, path: Path, why: str) -> Undefined:
        place: Span | None = self.reader.span()
        spans = () if place is None else ((place, "here"),)
        return Undefined("PCB301", f"`{_hint(path)}` {why}", spans, turns=True)

    def _type(self, state: State, value: Value) -> TensorType | None:
        return self.reader.in_state(state, lambda: self.reader.type_of(value))  # type: ignore[no-any-return]

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
                    help="a list has one length at each place; let all lanes append equally often, `for k in range(4):`, "
                    "else take `pcbatch.bounded(shape, dtype, capacity)`, or an array of the largest size, `a[n] = v`, "
                    "and count in `n`",
                )
            else:
                self.new[path] = self._moving(path, "has other entries before a turn than after it")
            raise _NeedsTurns(self.new[path])
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


class _NeedsTurns(NeedsConstantError):
    def __init__(self, found: Phi):
        from pcbatch.errors import Diagnostic, Note

        assert isinstance(found, Undefined)
        notes = tuple(Note(span, label) for span, label in found.spans[1:])
        place = found.spans[0][0] if found.spans else None
        super().__init__(Diagnostic(found.code, found.why, place, "", found.help, notes))


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


def _value_at(state: State, path: Path) -> Value:
    """What is at a path."""
    value: Any
    if path[0] == "n":
        value, steps = state.names[path[1], path[2]], path[3:]
    else:
        cell = state.heap[path[1]]
        value, steps = cell.items[path[2]], path[3:]
    for step in steps:
        value = value.items[step] if isinstance(step, int) else getattr(value, step)
    return value  # type: ignore[no-any-return]


def _put(state: State, path: Path, new: Value) -> None:
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


__all__ = ["Loop", "Loops", "RefusedError"]
