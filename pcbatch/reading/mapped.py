"""`pcbatch.map`: calls one behind the other, or a loop that stores what they give."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gast

from pcbatch.errors import Span
from pcbatch.reading.counters import Counted
from pcbatch.reading.emitter import LoopNote
from pcbatch.reading.expressions import DEAD
from pcbatch.reading.folds import Folds
from pcbatch.reading.kinds import Kind
from pcbatch.reading.loops import FEW_TURNS
from pcbatch.reading.operations import builtin, library
from pcbatch.reading.turns import Turn, Turns
from pcbatch.reading.values import Host, Lane, Tuple, Value

AT_ONCE = 16
"""So many calls of a map are made at the same time, where there are more: each is written out, and compiled."""
_HELP = "let the calls give numbers, arrays, and tuples, lists, dicts and objects of these"
WHY = "as each that is to be made at the same time as others is written out"


class Mapped(Folds):
    """`pcbatch.map`."""

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self.maps: dict[Span | None, Kind] = {}
        """The kind of what the calls of a map give, by the place of the map."""

    def _mapped(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """`pcbatch.map`: calls one behind the other, or a loop that stores what they give."""
        what, *over = arguments
        if not over:
            raise self.refusal(
                "PCB556", "`pcbatch.map` needs something to go over", "write `pcbatch.map(function, array)`"
            )
        unknown = [name for name in keywords if name != "count"]
        if unknown:
            message = f"TypeError: map() got an unexpected keyword argument '{unknown[0]}'"
            raise self.refusal("PCB401", message, "its only option is `count`: `pcbatch.map(f, xs, count=n)`")
        lengths = [self.length(each) for each in over]
        sizes = {self.constant(each, "how many elements there are") for each in lengths}
        if len(sizes) > 1:
            raise self.refusal("PCB401", "ValueError: zip() of sequences of several lengths")
        (size,) = sizes
        count = keywords.get("count")

        def one(index: Value) -> Value:
            return self.call_value(what, [self.item(each, index) for each in over], {})

        if count is None and size <= FEW_TURNS:
            results = []
            for k in range(size):
                results.append(one(Host(k)))
                if not self.is_live:
                    return DEAD
            return self._stacked(function, results)
        return self._in_rows(over, one, size, count)

    def _stacked(self, function: Host, results: Sequence[Value]) -> Value:
        first = results[0]
        if isinstance(first, Tuple):
            rows = zip(*(each.items for each in results), strict=True)  # type: ignore[union-attr]
            return dataclasses.replace(first, items=tuple(self._stacked(function, row) for row in rows))
        cell = self.cell(first)
        if cell is not None and cell.kind in ("list", "dict", "object"):
            parts = [dict(self.state.cell(each).parts()) for each in results]  # type: ignore[arg-type]
            made = cell.with_parts(lambda key, _: self._stacked(function, [each[key] for each in parts]))
            return self.new(cell.kind, made.items, cell.cls)
        stacked = self.bound(Host(function.value.stacked, path="stacked"))
        operation = library(stacked.value, stacked.text, None, is_steady=True)
        return self.emit(operation, [[self.pattern(each) for each in results]])

    def _in_rows(self, over: Sequence[Value], one: Callable[[Value], Value], size: int, count: Value | None) -> Value:
        """The results of calls for the first `count` elements, in arrays of `size` rows."""
        stop: Value = Host(size)
        if count is not None:
            stop = self.emit(builtin("__index__"), [self.pattern(self.read(count))])
            inside = self.both(
                self.truth(self.compare(gast.LtE, Host(0), stop)), self.truth(self.compare(gast.LtE, stop, Host(size)))
            )
            self.require(inside, f"ValueError: count={{}} of {size} elements", (self.lane(count).name,))
        mark = self.mark()
        slot = self._slot(Tuple(tuple(over)))
        first = one(Host(0))
        if not self.is_live:
            return DEAD
        blank = self._rows_of(first, size)
        self._is_apart = True
        self.maps[self.span()] = self.kind_of(first, [], {})
        self.back_to(mark)
        slot = self._slot(self._rows_made(blank))

        def call(index: Value) -> None:
            self._into_rows(self.state.names[slot], index, one(index))

        turn = self._by_steps(1, stop, count is None, size, call)
        if self.forking and turn is not None and turn.has_calls and turn.obstacle() is None:
            self.back_to(mark)
            slot = self._slot(self._rows_made(blank))
            at_once = min(size, AT_ONCE)
            self._by_steps(at_once, stop, count is None, size, call)
            why = None if at_once == size else f"{AT_ONCE} of these {size} calls are made at a time, {WHY}"
            self.emitter.notes.append(LoopNote(self.span(), why, is_written_out=True))
        return self.state.names.pop(slot)

    def _by_steps(
        self, at_once: int, stop: Value, is_known: bool, size: int, call: Callable[[Value], None]
    ) -> Turn | None:
        """Calls for the numbers up to `stop`, at most `size`, so many in each turn of a loop; gives one of these."""

        def calls(index: Value) -> None:
            for number in range(at_once):
                here = index if number == 0 else self.binary(gast.Add, index, Host(number))
                if (number == 0 and at_once < size) or (is_known and size % at_once == 0):
                    call(here)
                    continue
                is_there = self.truth(self.compare(gast.Lt, here, stop))
                assert isinstance(is_there, Lane)
                self.fork(is_there, [partial(call, here), lambda: None])

        if at_once == size:
            calls(Host(0))
            return None
        turns = -(-size // at_once) if is_known else None
        counted = Counted(Host(0), stop, Host(at_once), lambda index: index, turns)
        return self.by_counter(counted, Turns(None, calls, lambda: None))

    def _rows_of(self, value: Value, size: int) -> Any:
        """The types of arrays with a row for each result, in its structure."""
        value = self.read(self.known(value))
        type_ = self.type_of(value)
        if type_ is not None:
            return type_.returned, (size, *type_.shape)
        if isinstance(value, Tuple):
            return value, [self._rows_of(each, size) for each in value.items]
        cell = self.cell(value)
        if cell is None:
            raise self.refusal("PCB426", f"{self.described(value)} cannot be a row of an array", _HELP)
        return cell, {key: self._rows_of(each, size) for key, each in cell.parts()}

    def _rows_made(self, rows: Any) -> Value:
        kind, parts = rows
        if isinstance(kind, str):
            return self.emit(builtin("__blank__"), [kind, *parts])
        if isinstance(kind, Tuple):
            return dataclasses.replace(kind, items=tuple(map(self._rows_made, parts)))
        items = {key: self._rows_made(each) for key, each in parts.items()}
        return self.new(kind.kind, items if isinstance(kind.items, dict) else tuple(items.values()), kind.cls)

    def _into_rows(self, rows: Value, index: Value, value: Value) -> None:
        value = self.known(value)
        if self.type_of(rows) is not None:
            self.store_element(rows, index, self.read(value))
            return
        if isinstance(rows, Tuple) and isinstance(value, Tuple):
            for row, part in zip(rows.items, value.items, strict=True):
                self._into_rows(row, index, part)
            return
        cell, own = self.cell(rows), self.cell(value)
        assert cell is not None and own is not None
        for (_, row), (_, part) in zip(cell.parts(), own.parts(), strict=True):
            self._into_rows(row, index, part)
