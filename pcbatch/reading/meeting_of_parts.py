"""Joins of values that are None on some paths, or parts of an array of different lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pcbatch.ir.types import TensorType
from pcbatch.reading.emitter import hint_of
from pcbatch.reading.several import BOOL, Several
from pcbatch.reading.state import State
from pcbatch.reading.values import NONE, Host, Lane, Lazy, Optional, Undefined, Value, is_none, is_same


class PartsMeeting:
    """The part of a meeting that is about them."""

    # of parts above
    value: Callable[[Sequence[Value], str], Value]
    _at_end: Callable[[int, Any], Any]

    reader: Several
    states: list[State]
    copies: list[tuple[Lane, tuple[Value, ...]]]

    def part(self, values: Sequence[Value], what: str) -> Value | None:
        """A part of an array of another length on each way, or of another array of its shape; None for all else."""
        parts = [
            self.reader.in_state(state, lambda value=value: self.reader.as_slice(value))
            for state, value in zip(self.states, values, strict=True)
        ]
        if any(isinstance(each, Lazy) and each.kind in ("masked", "filtered") for each in values):
            parts = [each if isinstance(each, Lazy) else None for each in values]
        known = [each for each in parts if each is not None]
        if len(known) < len(values):
            return None
        types = self._types_of(known)
        rooms = [each.shape[0] for each in types if each is not None]
        kinds = {each.kind for each in known}
        if "filtered" not in kinds and (len(kinds) > 1 or len({*rooms}) > 1):
            for way, each in enumerate(known):
                known[way] = self._at_end(way, lambda each=each: self.reader.with_room(each, max(rooms)))
            types = self._types_of(known)
        are_alike = len({(each.kind, type_ and type_.shape) for each, type_ in zip(known, types, strict=True)}) == 1
        if None in types or not are_alike:
            return None
        joined = [self.value(row, what) for row in zip(*(each.parts[:3] for each in known), strict=True)]
        undefined = next((each for each in joined if isinstance(each, Undefined)), None)
        return undefined or Lazy(known[0].kind, (*joined, *joined[1:3] * (known[0].kind == "ragged")))

    def _types_of(self, parts: Sequence[Lazy]) -> list[TensorType | None]:
        return [
            self.reader.in_state(state, lambda each=each: self.reader.type_of(each.parts[0]))
            for state, each in zip(self.states, parts, strict=True)
        ]

    # -- values that may be None ---------------------------------------------------------------------------------------

    def is_optional(self, values: Sequence[Value]) -> bool:
        """Tell whether any of some values may be None, and they are not all words."""
        return any(isinstance(each, Optional) or is_none(each) for each in values) and not self.reader.are_words(values)

    def contents(self, values: Sequence[Value]) -> tuple[list[Host | Lane], list[Value]]:
        """Return whether values exist on each path, and the existing ones; nothing if none ever does."""
        parts = [
            self.reader.in_state(state, lambda value=value: self.reader.parts_of(value))
            for state, value in zip(self.states, values, strict=True)
        ]
        flags = [there for there, _ in parts]
        known = next((way for way, (_, content) in enumerate(parts) if content is not None), None)
        if known is None:
            return flags, []
        (_, first), source = parts[known], self.states[known]
        return flags, [
            self.reader.blank_of(first, source, state) if content is None else content
            for state, (_, content) in zip(self.states, parts, strict=True)
        ]

    def optional(self, values: Sequence[Value], what: str) -> Value:
        """A value that is None on some of the ways, or in some of the lanes there."""
        flags, contents = self.contents(values)
        content = self.value(contents, what) if contents else NONE
        if not contents or isinstance(content, Undefined):
            return content
        there: Host | Lane = flags[0]
        if not all(is_same(there, each) for each in flags):
            there = Lane(self.reader.emitter.fresh(BOOL, f"has_{hint_of(what) or 'it'}"), BOOL)
            self.copies.append((there, tuple(flags)))
        return self.reader.if_there(there, content)
