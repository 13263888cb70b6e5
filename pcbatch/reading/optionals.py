"""Values that are None in some lanes: a bool that says where there is one, and what it is there.

    best = None                       has_best = False; best = 0.0
    for x in xs:
        if best is None or x < best:      if not has_best or x < best:
            best = x                          has_best = True; best = x

In the lanes for which it is None, an object of the same structure stands in for what is there in the others. A test on
the bool decides what it is on each of the two ways behind. An operation on it fails the lanes for which it is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pcbatch.reading.meeting import End, ValueJoin
from pcbatch.reading.operations import CHOICE, GETITEM
from pcbatch.reading.several import BOOL, Several
from pcbatch.reading.values import NONE, Host, Lane, Optional, Value, is_same


class Optionals(Several):
    """Values that may be None."""

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


def _flag(there: Host | Lane) -> bool | Lane:
    return there if isinstance(there, Lane) else bool(there.value)
