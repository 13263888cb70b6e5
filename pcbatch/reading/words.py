"""Words: texts, members of enumerations, None as values of a lane, each by a number of its own in the program."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import gast

from pcbatch.ir.types import TensorType
from pcbatch.reading.emission import Emission
from pcbatch.reading.operations import BINARY, CHOICE, GETITEM
from pcbatch.reading.values import Choice, Host, Lane, Value, plain_number, same_host

NUMBER = TensorType("int32")
"""The type of a word's number."""


def is_word(value: Value) -> bool:
    """Tell whether a value is a word, or one of several."""
    if isinstance(value, Choice):
        return True
    host = value.value if isinstance(value, Host) else 0
    is_member = isinstance(host, enum.Enum) and not isinstance(host, enum.IntFlag)
    return host is None or isinstance(host, str | bytes) or is_member


class Words(Emission):
    """Words, and what is made of one of several by lane."""

    # of parts above
    taken: Callable[..., Value]

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._words: list[Any] = []
        """Each by its number."""

    def are_words(self, values: Sequence[Value]) -> bool:
        """Tell whether some values are words of which a lane may have one: none is a number, or each of one type."""
        return all(map(is_word, values)) and len({self.type_of(each) for each in values}) == 1

    def type_of(self, value: Value) -> TensorType | None:
        """The type of a number or an array; members of an IntEnum are ints, whichever a lane has."""
        if type(value) is not Choice:
            return super().type_of(value)
        types = {super(Words, self).type_of(self.word(number)) for number in value.words}
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
