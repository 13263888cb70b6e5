"""One of several objects, values that are None in some lanes, and words by lane.

An object that is made on one way through a program is nobody's on the other ones. Where it may be one of several behind
both, an object of the same structure stands in for it there, so that all ways have the same variables.

A value that may be None is a bool that says where there is one, and what it is there.

    best = None                       has_best = False; best = 0.0
    for x in xs:
        if best is None or x < best:      if not has_best or x < best:
            best = x                          has_best = True; best = x

In the lanes for which it is None, an object of the same structure stands in for what is there in the others. A test on
the bool decides what it is on each of the two ways behind. An operation on it fails the lanes for which it is None.

Words are texts, members of enumerations, and None as values of a lane: each has a number of its own in the program.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gast
import numpy as np

from pcbatch.ir.types import TensorType
from pcbatch.reading.emission import Emission
from pcbatch.reading.operations import BINARY, CHOICE, GETITEM
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
    plain_number,
    same_host,
)

NUMBER = TensorType("int32")
"""The type of a word's number."""
BOOL = TensorType("bool")
"""The type of what says whether a value is None."""


def is_word(value: Value) -> bool:
    """Tell whether a value is a word, or one of several."""
    if isinstance(value, Choice):
        return True
    host = value.value if isinstance(value, Host) else 0
    is_member = isinstance(host, enum.Enum) and not isinstance(host, enum.IntFlag)
    return host is None or isinstance(host, str | bytes) or is_member


class Several(Emission):
    """One of several objects, values that are None in some lanes, and words by lane."""

    # of parts above
    taken: Callable[..., Value]
    is_fixed: Callable[[Value], bool]
    layout_marks: Callable[[Value], set[str]]
    class_value: Callable[[type, str], Value | None]
    is_rows: Callable[[Value], bool]
    own_of_host: Callable[[Host], Ref]
    refuse_rows: Callable[[Sequence[Cell]], None]
    as_slice: Callable[[Value], Lazy | None]
    with_room: Callable[[Lazy, int], Lazy]
    require: Callable[..., None]
    truth: Callable[[Value], Host | Lane]
    lazily: Callable[[bool, Host | Lane, Callable[[], Value]], Host | Lane]
    negated: Callable[[Host | Lane], Host | Lane]
    both: Callable[[Host | Lane, Host | Lane], Host | Lane]
    either: Callable[[Host | Lane, Host | Lane], Host | Lane]
    chosen: Callable[[Lane, Value, Value], Value]

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._words: list[Any] = []
        """Each by its number."""
        self._fixed: list[Value] = []
        """Functions and objects of the world that may be one of several, each in a cell of a negative number."""
        self.flags: set[str] = set()
        """Bools of the lane's that say whether a value is None."""

    def are_words(self, values: Sequence[Value]) -> bool:
        """Tell whether some values are words of which a lane may have one: none is a number, or each of one type."""
        return all(map(is_word, values)) and len({self.type_of(each) for each in values}) == 1

    def type_of(self, value: Value) -> TensorType | None:
        """The type of a number or an array; members of an IntEnum are ints, whichever a lane has."""
        if type(value) is not Choice:
            return super().type_of(value)
        types = {super(Several, self).type_of(self.word(number)) for number in value.words}
        return types.pop() if len(types) == 1 else None

    def read(self, value: Value) -> Value:
        """The value that an array or a view holds now, and the number that a member of an IntEnum is."""
        if type(value) is not Choice or (type_ := self.type_of(value)) is None:
            return super().read(value)
        known = {number: plain_number(self._words[number]) for number in value.words}
        table = [known.get(number, known[value.words[0]]) for number in range(value.words[-1] + 1)]
        return self.lane(self.emit(GETITEM, [table, value.number]), type_)

    def number_beside(self, value: Value, other: Value) -> Value:
        """A member of an IntEnum as the number that it is, beside a number or an array of the lane's."""
        is_number = not isinstance(other, Choice | Host) and self.type_of(other) is not None
        return self.read(value) if is_number and isinstance(value, Choice) else value

    def word(self, number: int) -> Host:
        """The word of a number."""
        return Host(self._words[number])

    def number_of(self, value: Value) -> Host | Lane:
        """The number of a word."""
        if isinstance(value, Choice):
            return value.number
        assert isinstance(value, Host)
        for number, each in enumerate(self._words):
            if same_host(each, value.value):
                return Host(number)
        self._words.append(value.value)
        return Host(len(self._words) - 1)

    def numbers_of(self, values: Sequence[Value]) -> tuple[int, ...]:
        """The numbers of all words that some values may be."""
        found: set[int] = set()
        for value in values:
            number = self.number_of(value)
            found.update(value.words if isinstance(value, Choice) else (number.value,))  # type: ignore[union-attr]
        return tuple(sorted(found))

    def one_word(self, number: Value, words: Sequence[int]) -> Value:
        """The word whose number is a lane's, one of `words`."""
        if len(words) == 1:
            return self.word(words[0])
        assert isinstance(number, Lane)
        return Choice(number, tuple(words))

    def of_words(self, value: Choice, function: Callable[[Host], Value]) -> Value:
        """Return what `function` makes of a word that differs by lane."""
        numbers, value = value.words[-1] + 1, self._possible(value)
        found = [self.known(function(self.word(number))) for number in value.words]
        if len(found) == 1:
            return found[0]
        if all(isinstance(each, Host) and isinstance(each.value, bool) for each in found):
            return self._flags(value, [bool(each.value) for each in found], numbers)  # type: ignore[union-attr]
        return self.taken(found, self._place_of(value, numbers))

    def _possible(self, value: Choice) -> Choice:
        """A word that differs by lane, without those that it cannot be where control is now: see `State.assume`."""
        excluded = self.state.excluded.get(value.number.name, frozenset())
        left = tuple(number for number in value.words if number not in excluded)
        return Choice(value.number, left) if left else value

    def _flags(self, value: Choice, flags: Sequence[bool], numbers: int) -> Value:
        """Tell whether a word is one of those with a flag; all numbers are below `numbers`, on other ways, too."""
        if len(set(flags)) == 1:
            return Host(flags[0])
        found = self._has_flag(value, flags, numbers)
        if isinstance(found, Lane):
            wrong, right = (
                tuple(w for w, flag in zip(value.words, flags, strict=True) if flag is k) for k in (False, True)
            )
            self.state.meanings[found.name] = "word", value.number.name, wrong, right
        return found

    def _has_flag(self, value: Choice, flags: Sequence[bool], numbers: int) -> Value:
        for op, wanted in ((gast.Eq, True), (gast.NotEq, False)):
            if flags.count(wanted) == 1:
                return self.emit(BINARY[op], [value.number, value.words[flags.index(wanted)]])
        known = dict(zip(value.words, flags, strict=True))
        return self.emit(GETITEM, [[known.get(number, False) for number in range(numbers)], value.number])

    def _place_of(self, value: Choice, numbers: int) -> Lane:
        """The place of a word among those that it may be; any place, where it is none of them."""
        if value.words == tuple(range(numbers)):
            return value.number
        places = {number: place for place, number in enumerate(value.words)}
        table = [places.get(number, 0) for number in range(numbers)]
        return self.lane(self.emit(GETITEM, [table, value.number]), NUMBER)

    def words_at(self, items: Sequence[Value], index: Lane) -> Value:
        """The one of some words at a lane's number."""
        numbers = [self.number_of(each) for each in items]
        words = self.numbers_of(items)
        if len(words) == 1:
            return self.word(words[0])
        table = [each if isinstance(each, Lane) else each.value for each in numbers]
        return Choice(self.lane(self.emit(GETITEM, [table, index]), NUMBER), words)

    def word_if(self, condition: Lane, x: Value, y: Value) -> Value:
        """The one of two words that a lane's condition says."""
        given = [each if isinstance(each, Lane) else each.value for each in map(self.number_of, (x, y))]
        number = self.lane(self.emit(CHOICE, [condition, *given]), NUMBER)
        return self.one_word(number, self.numbers_of([x, y]))

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
