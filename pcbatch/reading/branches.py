"""Branches: arms that are interpreted from copies of the state and joined, or computed both where that is straight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gast

from pcbatch.ir import payload
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import NeedsBlocksError
from pcbatch.reading.meeting import End, ValueJoin
from pcbatch.reading.operations import AND, CHOICE, GETITEM, OR, UNARY
from pcbatch.reading.several import BOOL, Several, refs_of
from pcbatch.reading.state import State
from pcbatch.reading.values import (
    Bound,
    Choice,
    Function,
    Generator,
    Host,
    Lane,
    OneOf,
    Optional,
    Range,
    Ref,
    Super,
    Tuple,
    Undefined,
    Value,
    is_same,
)

Arm = Callable[[], "Value | None"]


class Branches(Several):
    """Truth and choice."""

    # of parts above
    object_truth: Callable[[Ref], Host | Lane | None]
    is_true: Callable[[Value], bool]
    range_length: Callable[[Range], Value]

    # -- truth ---------------------------------------------------------------------------------------------------------

    def truth(self, value: Value) -> Host | Lane:
        """`bool(value)`: known, or a bool of the lane's."""
        value = self.read(self.known(value))
        match value:
            case Host(host) if not self.is_array(host):
                return Host(bool(host))
            case Tuple(items):
                return Host(bool(items))
            case Range():
                return self.truth(self.range_length(value))
            case Ref():
                cell = self.state.cell(value)
                if cell.kind in ("list", "dict", "set"):
                    return Host(bool(cell.items))
                found = self.object_truth(value)
                if found is not None:
                    return found
                return Host(True)
            case OneOf(items=items) if not all(map(self.is_true, items)):
                return self.truth(self.on_each(value, self.truth))
            case Function() | Bound() | Generator() | Super() | OneOf():
                return Host(True)
            case Choice():
                return self.truth(self.of_words(value, self.truth))
            case Optional():
                return self.is_known(value, self.truth)
        lane = self.lane(value)
        if lane.type.dtype == "bool" and not lane.type.shape:
            return lane
        if lane.type.shape:
            raise self.refusal(
                "PCB302",
                f"the truth of an array ({lane.type}) is ambiguous",
                f"write {self.backend.spelling('any')}(..) or {self.backend.spelling('all')}(..)",
            )
        name = self.emitter.fresh(BOOL)
        self.emitter.assign(name, (lane.name,), payload.Truth(), self.span())
        return Lane(name, BOOL)

    def negated(self, truth: Host | Lane) -> Host | Lane:
        """`not truth`."""
        if isinstance(truth, Host):
            return Host(not truth.value)
        match self.state.meanings.get(truth.name):
            case "not", part:
                return Lane(part, BOOL)
        found = self.emit(UNARY[gast.Not], [truth])
        assert isinstance(found, Lane)
        self._means(found, "not", truth)
        return found

    def _means(self, lane: Lane, word: str, *parts: Lane) -> None:
        """Note what a bool is made of, if that tells whether values are None."""
        names = [part.name for part in parts]
        match [self.state.meanings.get(name) for name in names]:
            case [("word", one, *ones), ("word", other, *others)] if one == other:
                both = [
                    {*x} | {*y} if (word == "and") is holds else {*x} & {*y}
                    for x, y, holds in zip(ones, others, (True, False), strict=True)
                ]
                self.state.meanings[lane.name] = "word", one, *(tuple(sorted(each)) for each in both)
                return
        if not (self.flags.isdisjoint(names) and self.state.meanings.keys().isdisjoint(names)):
            self.state.meanings[lane.name] = word, *names

    def both(self, a: Host | Lane, b: Host | Lane) -> Host | Lane:
        """`a and b` of two truths."""
        if isinstance(a, Host):
            return b if a.value else a
        if isinstance(b, Host):
            return a if b.value else b
        found = self.emit(AND, [a, b])
        assert isinstance(found, Lane)
        self._means(found, "and", a, b)
        return found

    def either(self, a: Host | Lane, b: Host | Lane) -> Host | Lane:
        """`a or b` of two truths."""
        if isinstance(a, Host):
            return a if a.value else b
        if isinstance(b, Host):
            return b if b.value else a
        found = self.emit(OR, [a, b])
        assert isinstance(found, Lane)
        self._means(found, "or", a, b)
        return found

    def join(self, ends: Sequence[End], span_node: Any = None) -> None:
        """Go on where all `ends` meet; nowhere if there are none."""
        if not ends:
            self.emitter.enter(None)
            return
        if len(ends) == 1:
            block, self.state = ends[0]
            self.emitter.enter(block)
            return
        meeting = self.meeting(ends)
        state = meeting.state()
        target = self.emitter.block()
        for place, (block, own) in enumerate(ends):
            self.emitter.enter(block)
            self.state = own
            for lane, values in meeting.copies:
                self.refuse_taped([values[place]])
                self.give(lane.name, values[place], lane.type)
            self.emitter.jump(target, self.span())
        self.emitter.enter(target)
        self.state = state

    def meeting(self, ends: Sequence[End]) -> ValueJoin:
        """Return what finds the state in which `ends` meet."""
        return ValueJoin(self, ends)

    # -- arms ----------------------------------------------------------------------------------------------------------

    def fork(self, condition: Lane, arms: Sequence[Arm]) -> Value:
        """Go one of two ways, by blocks; the value that the arms give, joined."""
        if self.straight:
            raise NeedsBlocksError
        self.refuse_inside("a branch")
        true, false = self.emitter.block(), self.emitter.block()
        self.emitter.branch(condition, true, false, self.span())
        states = [self.state.copy() for _ in arms]
        for state, holds in zip(states, (True, False), strict=True):
            state.assume(condition.name, holds)
        return self.meet(zip((true, false), states, arms, strict=True))

    def refuse_inside(self, what: str) -> None:
        """Refuse what takes blocks inside of a `with` statement."""
        if self.contexts:
            raise self.refusal(
                "PCB107",
                f"{what} inside of `with`",
                "keep assignments in the block, and decide after it; what a tape is to see write with tf.where and "
                "tf.while_loop(.., maximum_iterations=n)",
                label="here the block would be left",
            )

    def meet(self, ways: Any) -> Value:
        """Interpret arms, each from its block and state, and go on where they meet with the value that they give."""
        slot = (0, f" value {self.number()}")
        ends: list[End] = []
        gives = False
        for block, state, arm in ways:
            self.emitter.enter(block)
            self.state = state
            value = arm()
            if self.is_live:
                if value is not None:
                    self.state.names[slot] = value
                    gives = True
                assert self.emitter.current is not None
                ends.append((self.emitter.current, self.state))
        self.join(ends)
        if not gives or not self.is_live:
            return Host(None)
        return self.state.names.pop(slot)

    def choose(self, condition: Lane, a: Callable[[], Value], b: Callable[[], Value]) -> Value:
        """`a() if condition else b()`: both computed where that is straight, else by blocks."""
        found = self.choose_straightly(condition, a, b)
        return self.fork(condition, [a, b]) if found is None else found

    def choose_straightly(self, condition: Lane, a: Callable[[], Value], b: Callable[[], Value]) -> Value | None:
        """`a() if condition else b()`, both computed; None, and nothing is done, where that takes blocks."""
        mark = self.mark()
        try:
            x = self.straightly(condition, a)
            y = self.straightly(self.negated(condition), b)  # type: ignore[arg-type]
            return self.selection(condition, x, y)
        except NeedsBlocksError:
            self.back_to(mark)
        return None

    def straightly(self, condition: Lane, what: Callable[[], Value]) -> Value:
        """Compute `what()` whether or not `condition` holds; NeedsBlocksError where that is impossible."""
        before, outer = self.state, self.guard
        self.state = before.copy()
        names, heap, facts = dict(before.names), dict(before.heap), before.facts
        self.state.assume(condition.name, True)
        block = self.emitter.current
        self.straight += 1
        try:
            self.guard = condition if outer is None else self._both_hold(outer, condition)
            value = what()
        finally:
            self.straight -= 1
            self.guard = outer
        if self.emitter.current is not block or self._has_changed(names, heap):
            raise NeedsBlocksError
        self.state.facts, self.state.excluded = facts, before.excluded
        return value

    def _both_hold(self, a: Lane, b: Lane) -> Lane:
        found = self.emit(AND, [a, b])
        assert isinstance(found, Lane)
        return found

    def _has_changed(self, names: dict[Any, Value], heap: dict[int, Any]) -> bool:
        now: State = self.state
        if any(now.heap.get(number) is not cell for number, cell in heap.items()):
            return True
        return any(name not in now.names or now.names[name] is not value for name, value in names.items()) or any(
            name not in names for name in now.names
        )

    def require(self, truth: Host | Lane, message: str, arguments: tuple[str, ...] = ()) -> None:
        """Fail the lane unless `truth` holds."""
        if isinstance(truth, Host):
            if not truth.value:
                self.emitter.fault(message, arguments, "raise", self.span())
            return
        if self.straight:
            raise NeedsBlocksError
        self.refuse_inside("a check")
        right, wrong = self.emitter.block(), self.emitter.block()
        self.emitter.branch(truth, right, wrong, self.span())
        self.emitter.enter(wrong)
        self.emitter.fault(message, arguments, "raise", self.span())
        self.emitter.enter(right)
        self.state.assume(truth.name, True)

    def selection(self, condition: Lane, x: Value, y: Value) -> Value:
        """The one of two values that are there; NeedsBlocksError where they are no numbers, arrays or tuples."""
        if is_same(x, y):
            return x
        found = self.chosen_or_none(condition, x, y)
        if found is not None:
            return found
        if isinstance(x, Tuple) and isinstance(y, Tuple) and x.cls is y.cls and len(x.items) == len(y.items):
            pairs = zip(x.items, y.items, strict=True)
            return Tuple(tuple(self.selection(condition, a, b) for a, b in pairs), x.cls)
        if isinstance(x, Undefined) or isinstance(y, Undefined):
            self.known(x), self.known(y)
        if self.are_words([x, y]):
            return self.word_if(condition, x, y)
        if self.type_of(x) is None or self.type_of(y) is None:
            raise NeedsBlocksError
        self.refuse_taped([x, y])
        return self.sharing(self.emit(CHOICE, [condition, self.pattern(x), self.pattern(y)]), [x, y])

    def refuse_mixture(self, word: str, a: Value, b: Value) -> None:
        """Refuse to give one of two values where one is a bool and the other one a number."""
        types = [type_ for each in (a, b) if (type_ := self.type_of(each)) is not None]
        if len({type_.dtype == "bool" for type_ in types}) > 1:
            raise self.refusal(
                "PCB401",
                f"`{word}` gives one of its operands, {types[0]} or {types[1]}",
                "a lane's value has one type: for the truth of a number write `n != 0`",
            )

    def sharing(self, found: Value, sources: Sequence[Value]) -> Value:
        """An array that is one of several, which Python does not copy."""
        if isinstance(found, Lane) and found.type.shape:
            self.state.origins[found.name] = frozenset().union(*map(self.origins_of, sources))
        return found

    def taken(self, items: Sequence[Value], index: Lane, *, is_checked: bool = False) -> Value:
        """The one of `items` at a lane's number."""
        items = [self.known(each) for each in items]
        if not items:
            raise self.refusal("PCB401", "IndexError: index out of range: it is empty")
        found = self.taken_or_none(items, index, is_checked=is_checked)
        if found is not None:
            return found
        if all(isinstance(each, Tuple) for each in items) and len({(len(t.items), t.cls) for t in items}) == 1:  # type: ignore[union-attr]
            rows = zip(*(each.items for each in items), strict=True)  # type: ignore[union-attr]
            return Tuple(tuple(self.taken(row, index, is_checked=is_checked) for row in rows), items[0].cls)  # type: ignore[union-attr]
        if self.are_words(items):
            return self.words_at(items, index)
        if all(self.type_of(each) is not None for each in items):
            self.refuse_taped(items)
            return self.sharing(self.emit(GETITEM, [[self.pattern(each) for each in items], index]), items)
        objects = self.fixed(items)
        if objects is not None:
            return self._one_of(objects, self.placed(index, len(items)) if is_checked else index)
        if all(isinstance(each, Host) for each in items):
            return self.constants_at(items, index)  # type: ignore[arg-type]
        raise self.no_constant("PCB313", "elements of several kinds stand at an index that differs by lane")

    def _one_of(self, items: Sequence[Ref | OneOf], index: Lane) -> Value:
        """The object at a lane's number that is in range, each of which may be one of several itself."""
        every = tuple(dict.fromkeys(ref for each in items for ref in refs_of(each)))
        if len(every) == 1:
            return self.known(every[0])
        places = [self.place_among(each, every) for each in items]
        if all(map(is_same, places, map(Host, range(len(items))))):
            return OneOf(index, every)
        which = self.emit(GETITEM, [[self.pattern(each) for each in places], index])
        return OneOf(self.lane(which, TensorType("int32")), every)

    def _either_of(self, condition: Lane, x: Ref | OneOf, y: Ref | OneOf) -> Value:
        """The one of two objects, each of which may be one of several itself."""
        every = tuple(dict.fromkeys((*refs_of(x), *refs_of(y))))
        if len(every) == 1:
            return self.known(every[0])
        places = [self.pattern(self.place_among(each, every)) for each in (x, y)]
        return OneOf(self.lane(self.emit(CHOICE, [condition, *places]), TensorType("int32")), every)

    def constants_at(self, items: Sequence[Host], index: Lane) -> Value:
        """One of several values of Python's, by lane."""
        raise self.no_constant("PCB313", "elements that are no numbers stand at an index that differs by lane")

    def placed(self, index: Lane, length: int) -> Lane:
        """An index of a list as a number from 0, checked."""
        table = [*range(length)]
        found = self.emit(GETITEM, [table, index])
        return self.lane(found, TensorType("int32"))

    def on_each(self, value: OneOf, what: Callable[[Value], Value]) -> Value:
        """Return what `what` gives of one of several objects: done to each, where it is that one."""

        def from_(place: int) -> Value:
            def on() -> Value:
                return what(self.known(value.items[place]))

            if place == len(value.items) - 1:
                return on()
            return self.fork(self.is_place(value.index, place), [on, lambda: from_(place + 1)])

        return from_(0)

    def chosen(self, condition: Lane, x: Value, y: Value) -> Value:
        """The one of two values that are there: selected where they are numbers or objects, else by blocks."""
        found = None if is_same(x, y) else self.chosen_or_none(condition, x, y)
        if found is not None:
            return found
        if isinstance(x, Tuple) and isinstance(y, Tuple) and x.cls is y.cls and len(x.items) == len(y.items):
            return Tuple(tuple(self.chosen(condition, a, b) for a, b in zip(x.items, y.items, strict=True)), x.cls)
        objects = None if is_same(x, y) or self.type_of(x) is not None else self.fixed([x, y])
        if objects is not None and self.are_of_one_kind(objects):
            return self._either_of(condition, *objects)
        try:
            return self.selection(condition, x, y)
        except NeedsBlocksError:
            return self.fork(condition, [lambda: x, lambda: y])

    def selected(self, value: OneOf) -> Value:
        """The array that one of several is now."""
        cells = [self.state.cell(each) for each in value.items]
        if cells[0].kind != "array":
            parts = [dict(cell.parts()) for cell in cells]
            if any(list(each) != list(parts[0]) for each in parts):
                raise self.refusal("PCB301", "one of several objects of several structures goes into an operation")
            made = cells[0].with_parts(lambda key, _: self.taken([each[key] for each in parts], value.index))
            return self.new(cells[0].kind, made.items, cells[0].cls)
        found: Value = self.read(value.items[-1])
        for place in reversed(range(len(value.items) - 1)):
            is_it = self.is_place(value.index, place)
            found = self.selection(is_it, self.read(value.items[place]), found)
        return found

    def is_place(self, index: Lane, place: int) -> Lane:
        """Compare a lane's number with `place`."""
        from pcbatch.reading.operations import BINARY

        found = self.emit(BINARY[gast.Eq], [index, place])
        assert isinstance(found, Lane)
        return found
