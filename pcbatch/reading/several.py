"""One of several objects, and values that are None in some lanes.

An object that is made on one way through a program is nobody's on the other ones. Where it may be one of several behind
both, an object of the same structure stands in for it there, so that all ways have the same variables.

A value that may be None is a bool that says where there is one, and what it is there.

    best = None                       has_best = False; best = 0.0
    for x in xs:
        if best is None or x < best:      if not has_best or x < best:
            best = x                          has_best = True; best = x

In the lanes for which it is None, an object of the same structure stands in for what is there in the others. A test on
the bool decides what it is on each of the two ways behind. An operation on it fails the lanes for which it is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.operations import CHOICE, GETITEM
from pcbatch.reading.state import Cell, State, within, without_layouts
from pcbatch.reading.values import (
    NONE,
    Choice,
    Host,
    Lane,
    Lazy,
    OneOf,
    Optional,
    Ref,
    Undefined,
    Value,
    View,
    is_none,
    is_same,
)
from pcbatch.reading.words import Words

BOOL = TensorType("bool")
"""The type of what says whether a value is None."""


class Several(Words):
    """Objects of which a lane has one."""

    # of parts above
    is_fixed: Callable[[Value], bool]
    layout_marks: Callable[[Value], set[str]]
    class_value: Callable[[type, str], Value | None]
    is_rows: Callable[[Value], bool]
    own_of_host: Callable[[Host], Ref]
    refuse_rows: Callable[[Sequence[Cell]], None]
    as_slice: Callable[[Value], Lazy | None]
    with_room: Callable[[Lazy, int], Lazy]

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._fixed: list[Value] = []
        """Functions and objects of the world that may be one of several, each in a cell of a negative number."""
        self.flags: set[str] = set()
        """Bools of the lane's that say whether a value is None."""

    def place_among(self, value: Ref | OneOf, every: Sequence[Ref]) -> Value:
        """Tell which of several objects `value` is: a number, or a lane's."""
        if isinstance(value, Ref):
            return Host(every.index(value))
        table = [every.index(ref) for ref in value.items]
        if table == [*range(len(table))]:
            return value.index
        return self.emit(GETITEM, [table, value.index])

    def fixed(self, values: Sequence[Value]) -> list[Ref | OneOf] | None:
        """Values as one of several objects may be: functions and objects of the world in cells that never change.

        None where a value is no object.
        """
        found: list[Ref | OneOf] = []
        for value in values:
            if isinstance(value, Ref | OneOf):
                found.append(value)
            elif self.is_fixed(value):
                found.append(self._cell_of(value))
            else:
                return None
        return found

    def _cell_of(self, value: Value) -> Ref:
        """The cell of a function or an object of the world, the same in every state."""
        place = next((k for k, each in enumerate(self._fixed) if is_same(each, value)), len(self._fixed))
        if place == len(self._fixed):
            self._fixed.append(value)
        ref = Ref(-1 - place)
        cls = type(value.value) if isinstance(value, Host) else None
        self.state.heap.setdefault(ref.cell, Cell("fixed", (value,), cls))
        return ref

    def are_of_one_kind(self, values: Sequence[Ref | OneOf]) -> bool:
        """Tell whether all of some objects are lists, or dicts, or objects of classes, functions among them."""
        kinds = {self.kind(ref) for each in values for ref in refs_of(each)}
        return len({"object" if kind == "fixed" else kind for kind in kinds}) == 1

    def in_state(self, state: State, what: Any) -> Any:
        """Return what `what()` finds out in another state."""
        before, self.state = self.state, state
        try:
            return what()
        finally:
            self.state = before

    def shares(self, value: Value) -> set[str]:
        """The variables, and the objects, whose elements a value may share."""
        match value:
            case Lane(name):
                return {name, *without_layouts(self.state.origins.get(name, ()))}
            case View(base):
                return self.shares(base)
            case Ref(cell):
                own = self.state.heap[cell]
                return {f"#{cell}"}.union(*(self.shares(each) for each in own.items)) if own.kind == "array" else set()
            case OneOf(items=items):
                return set().union(*map(self.shares, items))
            case Host() if self.is_fresh(value):
                return {f"host {id(value)}"}
            case Optional(content=content):
                return self.shares(content)
        return set()

    def origins_of(self, value: Value) -> frozenset[str]:
        """Return the origins of an array that may be `value`: what it shares its elements with, and how it lies."""
        return frozenset(self.shares(value) | self.layout_marks(value))

    def is_fresh(self, value: Value) -> bool:
        """Tell whether a value is an array that is known now, and nobody's outside: a store makes an object of it."""
        return isinstance(value, Host) and value.place is None and self.is_array(value.value)

    def parts_of(self, value: Value) -> tuple[Host | Lane, Value | None]:
        """Return whether a value exists, and the value then; nothing for None."""
        if isinstance(value, Optional):
            value = self.known(value)
        if isinstance(value, Optional):
            return value.there, value.content
        return Host(not is_none(value)), None if is_none(value) else value

    def is_taped(self, value: Value) -> bool:
        """Tell whether a value is a variable of the library's that a gradient tape may ask for."""
        return isinstance(value, Host) and self.tapes and self.backend.is_variable(value.value)

    def refuse_taped(self, values: Sequence[Value]) -> None:
        """Refuse variables that a tape may ask for where lanes keep their values alone, or one of several."""
        taped = next((each for each in values if isinstance(each, Host) and self.is_taped(each)), None)
        if taped is not None:
            name = "it" if taped.place is None else taped.place.text
            raise self.refusal(
                "PCB415",
                f"`{name}` is a variable, of which lanes keep the value alone here: a gradient tape takes that for "
                f"another tensor",
                f"read `{name}` itself where the tape is; or make a value of its own: tf.identity({name})",
            )

    def celled(self, value: Lane) -> Ref:
        """The array that a variable holds, as an object that can change: all that held the variable refers to it."""
        known = [cell for cell in self.state.heap if self.state.heap[cell].kind == "array"]
        for number in known:
            if self.state.heap[number].items == (value,):
                return Ref(number)
        ref = self.new("array", ())
        self.state.mapped(lambda each: ref if isinstance(each, Lane) and each.name == value.name else None)
        self.state.heap[ref.cell] = Cell("array", (value,), variable=value.name)
        return ref

    def stand_in(self, ref: Ref, source: State, state: State) -> None:
        """Have an object that `source` has in another state, too, and what it leads to: zeros for its numbers."""
        if ref.cell in state.heap:
            return
        state.heap[ref.cell] = source.heap[ref.cell]
        state.heap[ref.cell] = source.heap[ref.cell].with_parts(lambda _, part: self.blank_of(part, source, state))

    def if_there(self, there: Host | Lane, content: Value) -> Value:
        """A value where a bool holds, None elsewhere; nothing inside of it may be None."""
        if isinstance(there, Host):
            return content if there.value else NONE
        if is_none(content) or isinstance(content, Undefined):
            return content
        self.flags.add(there.name)
        return Optional(there, content)

    def blank_of(self, value: Value, source: State, state: State) -> Value:
        """Return a blank in another state for a value that `source` has: zeros for its numbers."""
        match value:
            case Optional():
                return NONE
            case Lane():
                return blank(value)
            case Choice(words=words):
                return self.word(words[0])
            case Ref():
                self.stand_in(value, source, state)
                return value
            case OneOf(items=items):
                return self.blank_of(items[0], source, state)
            case View():
                value = replace(value, seen=None)
        return within(value, lambda part: self.blank_of(part, source, state))

    # of parts above
    require: Callable[..., None]
    truth: Callable[[Value], Host | Lane]
    lazily: Callable[[bool, Host | Lane, Callable[[], Value]], Host | Lane]
    negated: Callable[[Host | Lane], Host | Lane]
    both: Callable[[Host | Lane, Host | Lane], Host | Lane]
    either: Callable[[Host | Lane, Host | Lane], Host | Lane]
    chosen: Callable[[Lane, Value, Value], Value]

    def there(self, value: Value, error: str = "TypeError: this is None") -> Value:
        value = self.known(value)
        if not isinstance(value, Optional):
            return value
        self.require(value.there, error.replace("{", "{{").replace("}", "}}"))
        self.state.assume(value.there.name, True)
        return self.known(value.content)

    def is_known(self, value: Value, known: Callable[[Value], Value]) -> Host | Lane:
        """The truth of what `known` says of a value that may be None; where it is None, that does not hold."""
        value = self.known(value)
        if not isinstance(value, Optional):
            return self.truth(known(value))
        content = value.content
        return self.lazily(True, value.there, lambda: known(self.known(content)))

    def or_none(self, there: Host | Lane, content: Value) -> Value:
        """A value where a bool holds, None elsewhere."""
        if isinstance(content, Optional):
            return self.or_none(self.both(there, content.there), content.content)
        return self.if_there(there, content)

    def chosen_or_none(self, condition: Lane, x: Value, y: Value) -> Value | None:
        """The one of two values of which any may be None; None if that is not so."""
        (is_x, own), (is_y, other) = map(self.parts_of, (x, y))
        if self.are_words([x, y]):
            return None
        if isinstance(is_x, Host) and isinstance(is_y, Host):
            if is_x.value == is_y.value:
                return None
            there: Host | Lane = condition if is_x.value else self.negated(condition)
        else:
            there = self.lane(self.emit(CHOICE, [condition, *(_flag(each) for each in (is_x, is_y))]), BOOL)
        if own is None or other is None:
            content = own if other is None else other
        else:
            content = self.chosen(condition, own, other)
        return NONE if content is None else self.or_none(there, content)

    def taken_or_none(self, items: Sequence[Value], index: Lane, *, is_checked: bool) -> Value | None:
        """The one of `items` at a lane's number, of which some may be None; None if that is not so."""
        parts = [self.parts_of(each) for each in items]
        contents = [content for _, content in parts if content is not None]
        if not contents or all(is_same(there, Host(True)) for there, _ in parts) or self.are_words(items):
            return None
        flags = [_flag(there) for there, _ in parts]
        there = self.lane(self.emit(GETITEM, [flags, index]), BOOL)
        filled = [contents[0] if content is None else content for _, content in parts]
        return self.or_none(there, self.taken(filled, index, is_checked=is_checked))

    def is_same_or_none(self, a: Value, b: Value, same: Callable[[Value, Value], Value]) -> Host | Lane:
        """Tell whether two values are both None, or neither is and they are the `same`."""
        (is_a, own), (is_b, other) = map(self.parts_of, (a, b))
        neither = self.both(self.negated(is_a), self.negated(is_b))
        if own is None or other is None:
            return neither
        both = self.both(is_a, is_b)
        return self.either(neither, self.lazily(True, both, lambda: same(self.known(own), self.known(other))))


def blank(value: Lane) -> Host:
    """A zero of the type of a lane's value."""
    type_ = value.type
    if type_.weak:
        return Host(0 if "int" in type_.dtype else 0.0)
    return Host(np.zeros(type_.shape, type_.dtype))


def refs_of(value: Value) -> tuple[Ref, ...]:
    """The objects that a value may be."""
    return value.items if isinstance(value, OneOf) else (value,) if isinstance(value, Ref) else ()


def _flag(there: Host | Lane) -> bool | Lane:
    return there if isinstance(there, Lane) else bool(there.value)
