"""`pcbatch.map`: calls one behind the other, or a loop that stores what they give."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import gast

from pcbatch.reading.expressions import DEAD
from pcbatch.reading.folds import Folds
from pcbatch.reading.loops import FEW_TURNS
from pcbatch.reading.operations import builtin, library
from pcbatch.reading.values import (
    Host,
    Range,
    Tuple,
    Value,
)


class Mapped(Folds):
    """`pcbatch.map`."""

    def _mapped(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """`pcbatch.map`: calls one behind the other, or a loop that stores what they give."""
        what, *over = arguments
        if not over:
            raise self.refusal("PCB556", "`pcbatch.map` needs something to go over: `pcbatch.map(function, array)`")
        lengths = [self.length(each) for each in over]
        sizes = {self.constant(each, "how many elements there are") for each in lengths}
        if len(sizes) > 1:
            raise self.refusal("PCB401", "ValueError: zip() of sequences of several lengths")
        (size,) = sizes
        count = keywords.get("count")

        def one(index: Value) -> Value:
            return self.call_value(what, [self.item(each, index) for each in over], {})

        if count is None and size <= FEW_TURNS:
            results = [one(Host(k)) for k in range(size)]
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
        self.back_to(mark)
        slot = self._slot(self._rows_made(blank))
        whole = Host(range(size)) if count is None else Range(Host(0), stop, Host(1))

        def bind(index: Value) -> None:
            self._into_rows(self.state.names[slot], index, one(index))

        self.over(whole, None, bind, lambda: None, [])
        return self.state.names.pop(slot)

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
            raise self.refusal("PCB426", f"{self.described(value)} cannot be a row of an array")
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
