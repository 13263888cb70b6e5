"""Joins and heads of loops where types are not known: values of kinds that do not meet are a value that is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pcbatch.reading.heads import Head
from pcbatch.reading.meeting import ValueJoin
from pcbatch.reading.phis import Path, Phi, value_at
from pcbatch.reading.sources import scope_of
from pcbatch.reading.state import Cell, State
from pcbatch.reading.values import (
    NONE,
    Bound,
    Frame,
    Function,
    Generator,
    Lane,
    Lazy,
    OneOf,
    Range,
    Ref,
    Super,
    Undefined,
    Value,
)
from pcbatch.runtime.backends.untyped import UNKNOWN


@dataclass(frozen=True)
class Forgotten:
    """An object of the head of which nothing is known but that it is one."""


class UntypedMeeting(ValueJoin):
    """The joins of paths."""

    def missing(self, values: Sequence[Value | None], name: str) -> Value:
        given = [NONE if each is None else each for each in values]
        are_data = all(self.reader.in_state(s, lambda v=v: is_data(self.reader, v)) for s, v in self._each(given))
        if not are_data or not self.reader.is_doubtful:  # type: ignore[attr-defined]
            return super().missing(values, name)
        return self.value(given, name)

    def is_array(self, value: Value) -> bool:
        return isinstance(value, Lane) and value.name in self.reader.types

    def value(self, values: Sequence[Value], what: str) -> Value:
        types = [self.reader.in_state(s, lambda v=v: self.reader.type_of(v)) for s, v in self._each(values)]
        is_mixed = any(types) and None in types and not any(isinstance(each, Undefined) for each in values)
        return self.unmet(values, what) if is_mixed else super().value(values, what)

    def is_optional(self, values: Sequence[Value]) -> bool:
        return False  # None is a value like others

    def _each(self, values: Sequence[Value]) -> Any:
        return zip(self.states, values, strict=True)

    def unmet(self, values: Sequence[Value], what: str) -> Value:
        are_data = all(self.reader.in_state(s, lambda v=v: is_data(self.reader, v)) for s, v in self._each(values))
        is_code = any(map(self.reader.is_code, values))  # type: ignore[attr-defined]
        if not are_data or (is_code and not self.reader.is_doubtful):  # type: ignore[attr-defined]
            return super().unmet(values, what)
        return self.number(values, [UNKNOWN] * len(values), what)

    def _word(self, values: Sequence[Value], what: str) -> Value:
        return self.number(values, [UNKNOWN] * len(values), what)

    def unlike(self, numbers: tuple[int, ...], cells: Sequence[Cell], what: str) -> Value:
        refs = [Ref(number) for number in numbers]
        if not all(self.reader.in_state(s, lambda v=v: is_data(self.reader, v)) for s, v in self._each(refs)):
            return super().unlike(numbers, cells, what)
        content = self.number(refs, [UNKNOWN] * len(refs), what)
        if len(set(numbers)) == 1:
            ref = refs[0]
        else:
            self.reader.cells += 1
            ref = Ref(self.reader.cells)
        self.cells[numbers] = ref
        self.out.heap[ref.cell] = Cell("array", (content,))
        return ref


class UntypedHead(Head):
    """The head of a loop; where it `is_counted`, its turns can be written out."""

    def __init__(self, reader: Any, node: Any, phis: dict[Path, Phi], is_counted: bool):
        super().__init__(reader, phis)
        self.node, self.is_counted = node, is_counted

    def enter(self) -> None:
        for path, phi in self.phis.items():
            if isinstance(phi, Forgotten):
                self.reader.forget(Ref(path[1]))  # type: ignore[attr-defined]
            elif path[0] == "n":
                self.reader.state.names.setdefault((path[1], path[2]), NONE)
        super().enter()

    def compared(self, state: State) -> dict[Path, Phi]:
        found = super().compared(state)
        if self.reader.is_doubtful:  # type: ignore[attr-defined]
            frames = {frame.number: frame for frame in self.reader.frames}
            for number, name in state.names:
                is_new = (number, name) not in self.state.names and number in frames
                if is_new and self._is_read_behind(frames[number], name):
                    found["n", number, name] = UNKNOWN
        return found

    def _is_read_behind(self, frame: Frame, name: str) -> bool:
        """Tell whether a variable of a call is read behind the loop."""
        end = getattr(self.node, "end_lineno", None)
        places = scope_of(frame.function.tree).loads.get(name, ())
        return end is not None and any(place > (end, self.node.end_col_offset) for place in places)

    def moving(self, path: Path, why: str) -> Phi:
        if self.is_counted or not is_data(self.reader, value_at(self.state, path)):
            return super().moving(path, why)
        return UNKNOWN

    def number(self, path: Path, head: Lane, now: Value) -> None:
        if path not in self.lanes:
            return
        type_ = self._type(self.behind, now) or UNKNOWN
        joined = self.reader.joined([head.type, type_])
        if joined != head.type:
            self.new[path] = joined
            return
        self.moves.append((head, now))

    def is_optional(self, head: Value, now: Value) -> bool:
        return False

    def _word(self, path: Path, head: Value, now: Value) -> None:
        self.new[path] = UNKNOWN

    def changed_kind(self, path: Path, head: Ref, wants: tuple[Any, ...]) -> None:
        self.new["v", head.cell] = Forgotten()  # type: ignore[assignment]

    def restructured(self, path: Path, head: Ref, cells: tuple[Cell, Cell]) -> None:
        if self.is_counted or not is_data(self.reader, head):
            super().restructured(path, head, cells)
        self.changed_kind(path, head, ())


def is_data(reader: Any, value: Value) -> bool:
    """Tell whether a value can be a lane's: numbers, arrays, and structures of them."""
    return not any(
        isinstance(each, Function | Bound | Generator | Super | Lazy | Range | OneOf | Undefined)
        for each in reader.state.reachable(iter([value]))
    )
