"""Methods of one of several objects: emitted once, on an object that holds what the chosen one holds.

    arms[k].pull(x)          pulls = [pulls0, pulls1][k] + 1
                             pulls0 = pulls if k == 0 else pulls0; pulls1 = pulls if k == 1 else pulls1

So lanes meet in what the method does, whichever object is theirs. That can be done where the objects are of one
structure, the method can reach no other of them, and it changes numbers and arrays only. Elsewhere it is called on
each, where that is the one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pcbatch.reading.core import NeedsBlocksError, RefusedError
from pcbatch.reading.methods import Methods
from pcbatch.reading.state import are_alike, inside
from pcbatch.reading.values import Bound, Choice, Function, Generator, OneOf, Part, Ref, Value, View

Row = tuple[Ref, ...]
"""Cells that correspond, one of each of several objects."""
OTHERS = Ref | View | OneOf | Choice | Part | Bound | Function
"""Values that are no numbers and no arrays."""


class Gathered(Methods):
    """Methods of one of several objects."""

    def on_several(self, value: OneOf, name: str, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        rows = self._rows_of_cells(value.items)
        if rows is not None and self._reach_none(rows, [*arguments, *keywords.values()]):
            mark = self.mark()
            try:
                return self._on_gathered(value, rows, name, arguments, keywords)
            except (_OtherwiseError, RefusedError, NeedsBlocksError):
                self.back_to(mark)
        return super().on_several(value, name, arguments, keywords)

    def _rows_of_cells(self, items: Sequence[Ref]) -> list[Row] | None:
        """The cells of objects of one structure, row by row; None where they have none, or share a part."""
        rows = [tuple(items)]
        for row in rows:
            cells = [self.state.cell(ref) for ref in row]
            if not are_alike(cells) or cells[0].kind not in ("object", "list", "dict", "array"):
                return None
            if len({tuple(key for key, _ in cell.parts()) for cell in cells}) > 1:
                return None
            for parts in zip(*(dict(cell.parts()).values() for cell in cells), strict=True):
                if all(isinstance(each, Ref) for each in parts):
                    rows.append(parts)
                elif any(
                    isinstance(each, Ref | View | OneOf | Choice | Bound | Function) or inside(each) for each in parts
                ):
                    return None
            if len({ref.cell for each in rows for ref in each}) < len(items) * len(rows):
                return None
        return rows

    def _reach_none(self, rows: Sequence[Row], given: Sequence[Value]) -> bool:
        """Tell whether a method cannot reach the objects by what it is given."""
        cells = {ref.cell for row in rows for ref in row}
        return not any(
            isinstance(each, Function | Bound | Generator | View) or (isinstance(each, Ref) and each.cell in cells)
            for each in self.state.reachable(iter(given))
        )

    def _on_gathered(
        self, value: OneOf, rows: Sequence[Row], name: str, arguments: Sequence[Value], keywords: dict[str, Value]
    ) -> Value:
        cells = [[self.state.cell(ref) for ref in row] for row in rows]
        refs = [self.new(row[0].kind, (), row[0].cls) for row in cells]
        twins = dict(zip(rows, refs, strict=True))
        for ref, row in zip(refs, cells, strict=True):
            parts = [dict(cell.parts()) for cell in row]

            def gathered(key: Any, first: Value, parts: Any = parts) -> Value:
                if isinstance(first, Ref):
                    return twins[tuple(each[key] for each in parts)]
                return self.taken([each[key] for each in parts], value.index)

            self.state.heap[ref.cell] = row[0].with_parts(gathered)
        before = [self.state.cell(ref) for ref in refs]
        with self.kept(refs) as kept:
            function = refs[0] if name == "__call__" else self.method_of(refs[0], name) or self.attribute(refs[0], name)
            found = self.call_value(function, list(arguments), dict(keywords))
            if not self.is_live:
                return found
            if list(kept) != refs:
                raise _OtherwiseError
        with self.kept([found]) as kept:
            self._refuse_choices_of(refs)
            for targets, ref, old in zip(rows, refs, before, strict=True):
                self._scattered(value, targets, dict(old.parts()), ref)
            several = {ref.cell: OneOf(value.index, targets) for targets, ref in zip(rows, refs, strict=True)}
            self.state.mapped(lambda each: several.get(each.cell) if isinstance(each, Ref) else None)
            return kept[0]

    def _refuse_choices_of(self, refs: Sequence[Ref]) -> None:
        """Give up where the stand-ins are among others in what a lane has one of: they cannot be told apart there."""
        numbers = {ref.cell for ref in refs}
        names = {f"#{number}" for number in numbers}
        is_one_of_them = any(
            isinstance(each, OneOf) and not numbers.isdisjoint(ref.cell for ref in each.items)
            for each in self.state.reachable()
        )
        if is_one_of_them or any(not names.isdisjoint(each) for each in self.state.origins.values()):
            raise _OtherwiseError

    def _scattered(self, value: OneOf, row: Row, before: dict[Any, Value], ref: Ref) -> None:
        """Give the object of a row that is the one what a method has left."""
        now = dict(self.state.cell(ref).parts())
        if list(now) != list(before):
            raise _OtherwiseError
        changed = {key: new for key, new in now.items() if new is not before[key]}
        for place, each in enumerate(row):
            cell = self.state.cell(each)
            old = dict(cell.parts())
            found: dict[Any, Value] = {}
            for key, new in changed.items():
                if self.type_of(new) is None or self.type_of(old[key]) is None:
                    raise _OtherwiseError
                found[key] = self.selection(self.is_place(value.index, place), new, old[key])
            if changed:
                made = cell.with_parts(partial(_replaced, found))
                self.change(each, items=made.items, version=cell.version + 1)


def _replaced(found: Mapping[Any, Value], key: Any, value: Value) -> Value:
    return found.get(key, value)


class _OtherwiseError(Exception):
    """A method changes more of an object than its numbers and arrays."""
