"""Built-in functions that give sequences: ranges, `zip`, `sorted`, containers of other ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import gast

from pcbatch.ir.types import TensorType, meeting
from pcbatch.reading.calls import Calls
from pcbatch.reading.containers import MOST_ITEMS
from pcbatch.reading.core import FilteredError
from pcbatch.reading.lists_in_python import Set
from pcbatch.reading.operations import builtin
from pcbatch.reading.ragged import RAGGED
from pcbatch.reading.state import Row
from pcbatch.reading.values import Generator, Host, Lane, Lazy, Range, Ref, Tuple, Undefined, Value, is_none

VIEWS_OF_DICTS = {"keys", "values", "items"}
KEPT = VIEWS_OF_DICTS | RAGGED
"""Sequences that can be gone over again and again."""


class Sequences(Calls):
    """Sequences."""

    def call_range(self, *values: Value) -> Value:
        values = tuple(self.read(self.known(each)) for each in values)
        if all(isinstance(each, Host) for each in values):
            with self.raising(TypeError, ValueError, code="PCB109", help="write `range(start, stop, step)`"):
                return Host(range(*[each.value for each in values if isinstance(each, Host)]))
        start = Host(0) if len(values) == 1 else values[0]
        stop = values[0] if len(values) == 1 else values[1]
        step = values[2] if len(values) == 3 else Host(1)
        whole = [each if isinstance(each, Host) else self._whole(each) for each in (start, stop, step)]
        if isinstance(step, Host) and step.value == 0:
            message = "ValueError: range() arg 3 must not be zero"
            raise self.refusal("PCB109", message, "write `range(start, stop, step)`", label="the step is 0")
        self.require(self.truth(self.compare(gast.NotEq, step, Host(0))), "ValueError: range() arg 3 must not be zero")
        return Range(*whole)

    def _whole(self, value: Value) -> Value:
        if not self.is_whole(value):
            type_ = self.type_of(value)
            raise self.refusal(
                "PCB109", f"a range takes integers, not {type_ or self.described(value)}", "write int(..)"
            )
        type_ = self.type_of(value)
        if type_ is not None and type_.dtype == "bool":
            return self.emit(builtin("int"), [self.pattern(value)])
        return value

    def call_enumerate(self, value: Value, start: Value | None = None) -> Value:
        return Lazy("enumerate", (self.refuse_number(value), start or Host(0)))

    def _goes_by_counter(self, value: Value) -> bool:
        """Tell whether a loop goes over a value by a counter; all else is written out."""
        match self.known(value):
            case Lazy("zip", parts):
                return all(map(self._goes_by_counter, parts))
            case Lazy("enumerate" | "reversed", (part, *_)):
                return self._goes_by_counter(part)
            case Host(range()) | Range() | Lazy("ragged" | "masked" | "filtered"):
                return True
        if self.differs_in_length(value):
            return True
        type_ = self.type_of(value)
        return type_ is not None and bool(type_.shape)

    def call_zip(self, *values: Value, strict: Value | None = None) -> Value:
        values = tuple(map(self.refuse_number, values))
        is_strict = strict is not None and bool(self.constant(strict, "strict"))
        differing = [each for each in values if self._differs_by_lane(each)]
        if differing and is_strict:
            raise self.refusal(
                "PCB129",
                "a length that differs by lane stands in `zip(.., strict=True)`",
                "leave out strict=True; `zip` ends with the shortest",
            )
        if differing:
            parts = (e if self._goes_by_counter(e) else Tuple(tuple(self.sequence(e))) for e in values)
            return Lazy("zip", tuple(parts))
        if is_strict and not all(map(self._goes_by_counter, values)):
            rows = [self.sequence(each) for each in values]
            if len({len(row) for row in rows}) > 1:
                raise self.refusal("PCB401", "ValueError: zip() of sequences of several lengths")
            return Tuple(tuple(Tuple(row) for row in zip(*rows, strict=True)))
        if is_strict:
            self._all_equal(values)
        return Lazy("zip", values) if values else Tuple(())

    def _differs_by_lane(self, value: Value) -> bool:
        """Tell whether how many items a loop takes from this differs by lane."""
        value = self.known(value)
        if isinstance(value, Lazy) and value.kind not in RAGGED:
            parts = value.parts if value.kind == "zip" else value.parts[:1]
            return any(map(self._differs_by_lane, parts))
        return isinstance(value, Range | Lazy) or self.differs_in_length(value)

    def _all_equal(self, values: Sequence[Value]) -> None:
        lengths = [self.lazy_length(each) for each in values]
        if len({each.value for each in lengths if isinstance(each, Host)}) > 1:
            raise self.refusal("PCB401", "ValueError: zip() of sequences of several lengths")

    def _of_lazy(self, value: Lazy) -> list[Value]:
        if not self._goes_by_counter(value):
            return [*self.live(value)]
        self.spend(value)
        length = self.lazy_length(value)
        if not isinstance(length, Host):
            raise FilteredError(self.no_constant("PCB130", "how many items there are differs by lane").diagnostic)
        return [self.lazy_item(value, Host(k)) for k in range(length.value)]

    def sequence(self, value: Value) -> list[Value]:
        if isinstance(value, Lazy):
            return self._of_lazy(value)
        return super().sequence(value)

    def spend(self, value: Value) -> None:
        if isinstance(value, Generator) or (isinstance(value, Lazy) and value.kind not in KEPT):
            place = self.span()
            spent = Undefined(
                "PCB119",
                "an iterator gives each of its items once, and this one has been gone over",
                () if place is None else ((place, "gone over here"),),
                "make a list of it, `items = list(..)`, or write it again where it is needed again",
            )
            self.state.mapped(lambda each: spent if each is value else None)
            for part in value.parts if isinstance(value, Lazy) else (value.first,):
                self.spend(part)

    def live(self, whole: Value) -> Iterator[Value]:
        self.spend(whole)
        with self.kept([self.known(whole)]) as row:
            match row[0]:
                case Lazy("zip", parts):
                    yield from map(Tuple, self._side_by_side(parts))
                case Lazy("map", (_, *parts)):
                    for items in self._side_by_side(parts):
                        yield self.call_value(row[0].parts[0], list(items), {})
                case Lazy("filter", (_, part)):
                    for item in self.live(part):
                        with self.kept([item]) as kept:
                            if self._is_kept(row[0].parts[0], item):
                                yield kept[0]
                case Lazy("iter", (part,)):
                    yield from self.live(part)
                case Lazy("enumerate", (part, first)):
                    for number, item in enumerate(self.live(part)):
                        yield Tuple((self.binary(gast.Add, Host(number), first), item))
                case Lazy("reversed", (Ref() as part,)) if self.kind(part) == "list":
                    for place in reversed(range(len(self.state.cell(part).items))):
                        yield from self._items_now(row)[place : place + 1]
                case Lazy(kind, (Ref() as part,)) if kind in VIEWS_OF_DICTS:
                    keys = list(self.state.cell(part).items)
                    for key in keys:
                        yield self._entry(kind, key, self._items_now(row)[key])
                        if list(self._items_now(row)) != keys:
                            raise self.refusal("PCB401", "RuntimeError: dictionary changed size during iteration")
                case Lazy(kind, (Host() as part,)) if kind in VIEWS_OF_DICTS:
                    yield from [self._entry(kind, key, item) for key, item in self.entries(part).items()]
                case Ref() as part if self.kind(part) == "list":
                    yield from self._live_list(row)
                case other if (type_ := self.type_of(other)) is not None and type_.shape:
                    for place in range(type_.shape[0]):
                        yield self.element(row[0], Host(place))
                case other:
                    yield from self.each(self.sequence(other))

    def _live_list(self, row: Row) -> Iterator[Value]:
        for place in itertools.count():
            now = self._items_now(row)
            if place >= len(now):
                return
            if place > MOST_ITEMS:
                raise self.refusal(
                    "PCB130",
                    "this loop appends to the list that it goes over, without end",
                    "loop over a copy: `for x in [*xs]:`",
                )
            yield now[place]

    def _side_by_side(self, parts: Sequence[Value]) -> Iterator[tuple[Value, ...]]:
        """The items of several iterables, until the first of them ends."""
        running = [self.live(each) for each in parts]
        while True:
            with self.kept() as row:
                for each in running:
                    item = next(each, None)
                    if item is None:
                        return
                    row.append(item)
                items = tuple(row[place] for place in range(len(row)))
            yield items

    def _items_now(self, row: Row) -> Any:
        """Return what the container that a loop goes over has in it now."""
        value = self.known(row[0])
        part = self.known(value.parts[0]) if isinstance(value, Lazy) else value
        assert isinstance(part, Ref)
        return self.state.cell(part).items

    def _entry(self, kind: str, key: Any, value: Value) -> Value:
        """An item of a view of a dict."""
        return {"keys": self.host(key), "values": value}.get(kind) or Tuple((self.host(key), value))

    def pattern(self, value: Value) -> Any:
        if isinstance(value, Lazy) and value.kind not in RAGGED:
            return [self.pattern(each) for each in self.sequence(value)]
        return super().pattern(value)

    def call_reversed(self, value: Value) -> Value:
        value = self.known(value)
        if isinstance(value, Generator) or (isinstance(value, Lazy) and value.kind not in KEPT):
            message = f"TypeError: {self.described(value)} cannot be reversed"
            raise self.refusal("PCB129", message, "reverse what is inside: `zip(reversed(xs), reversed(ys))`")
        if self._goes_by_counter(value) or self.kind(value) == "list":
            return Lazy("reversed", (value,))
        return Tuple(tuple(reversed(self.sequence(value))))

    def call_iter(self, value: Value) -> Value:
        return Lazy("iter", (self.known(value),))

    def call_tuple(self, value: Value | None = None) -> Value:
        if value is not None and (self.is_lengthened() or self.is_list(self.known(value))):
            return self.call_list(value)
        with self.wanting():
            return Tuple(()) if value is None else Tuple(tuple(self.sequence(value)))

    def call_list(self, value: Value | None = None) -> Value:
        if value is not None and (found := self.lengthened_of(value)) is not None:
            return found
        with self.wanting():
            return self.new_container("list", () if value is None else tuple(self.sequence(value)))

    def call_dict(self, value: Value | None = None, **keywords: Value) -> Value:
        if self.is_lengthened() and value is not None and not keywords:
            return self.call_value(self.attribute(self.made_container("dict", []), "copy_of"), [value], {})
        with self.wanting():
            return self.new_container("dict", {**({} if value is None else self.entries(value)), **keywords})

    def call_set(self, value: Value | None = None) -> Value:
        if self.is_lengthened() and value is not None:
            return self.construct(Set, [value])
        with self.wanting():
            return self.set_of([] if value is None else self.sequence(value))

    def call_map(self, function: Value, *values: Value) -> Value:
        return Lazy("map", (function, *map(self.refuse_number, values)))

    def call_filter(self, function: Value, value: Value) -> Value:
        return Lazy("filter", (function, self.refuse_number(value)))

    def _is_kept(self, function: Value, item: Value) -> bool:
        """Tell whether `filter` keeps an item."""
        found = self.truth(item if is_none(function) else self.call_value(function, [item], {}))
        if isinstance(found, Lane):
            raise self.no_constant("PCB130", "whether an element is kept differs by lane")
        return bool(found.value)

    def call_sorted(self, value: Value, key: Value | None = None, reverse: Value | None = None) -> Value:
        named = {name: each for name, each in (("key", key), ("reverse", reverse)) if each is not None}
        found = self.lengthened_of(value)
        if found is not None:
            self.call_value(self.attribute(found, "sort"), [], named)
            return found
        with self.wanting():
            return self.in_order(value, named)

    def in_order(self, value: Value, keywords: dict[str, Value]) -> Value:
        items = self.sequence(value)
        key = keywords.get("key")
        keys = items
        if key is not None and not is_none(key):
            with self.kept([key, *items]) as row:
                for k in range(len(items)):
                    row.append(self.call_value(row[0], [row[1 + k]], {}))
                items, keys = [*row][1 : 1 + len(items)], [*row][1 + len(items) :]
        is_reversed = bool(self.constant(keywords["reverse"], "reverse")) if "reverse" in keywords else False
        if all(isinstance(each, Host) or self._is_constant(each) for each in keys):
            plain = [self.constant(each, "a key") for each in keys]
            order = sorted(range(len(items)), key=plain.__getitem__, reverse=is_reversed)
            return self.new_container("list", tuple(items[k] for k in order))
        if keys is items and all(self.type_of(each) is not None for each in items):
            given = {"reverse": True} if is_reversed else {}
            return self.emit(builtin("sorted"), [[self.pattern(each) for each in self._met_in_one(items)]], given)
        return self.new_container("list", tuple(self._exchanged(items, keys, is_reversed)))

    def _met_in_one(self, items: list[Value]) -> list[Value]:
        """Numbers in the one dtype in which those that have one meet."""
        types = [type_ for each in items if (type_ := self.type_of(each)) is not None]
        dtypes = [each.dtype for each in types if not each.weak]
        met: str | None = dtypes[0] if dtypes else None
        for each in dtypes:
            met = None if met is None else meeting(met, each)
        if met is None or len({*dtypes}) == 1:
            return items
        return [self.lane(each, TensorType(met, type_.shape)) for each, type_ in zip(items, types, strict=True)]

    def _is_constant(self, value: Value) -> bool:
        return isinstance(value, Tuple) and all(
            isinstance(each, Host) or self._is_constant(each) for each in value.items
        )

    def _exchanged(self, items: list[Value], keys: list[Value], is_reversed: bool) -> list[Value]:
        """Items in the order of their keys: neighbours are exchanged, as in Python's stable order."""
        op = gast.Lt if is_reversed else gast.Gt
        with self.kept(Tuple((key, item)) for key, item in zip(keys, items, strict=True)) as rows:
            for end in range(len(rows) - 1, 0, -1):
                for k in range(end):
                    swap = self.truth(self.compare(op, rows[k].items[0], rows[k + 1].items[0]))  # type: ignore[union-attr]
                    a, b = rows[k], rows[k + 1]
                    if isinstance(swap, Lane):
                        rows[k], rows[k + 1] = self.chosen(swap, b, a), self.chosen(swap, a, b)
                    elif swap.value:
                        rows[k], rows[k + 1] = b, a
            return [row.items[1] for row in rows]  # type: ignore[union-attr]
