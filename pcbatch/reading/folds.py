"""Built-in functions that take the items of a sequence together: `sum`, `any`, `max`; and `pcbatch.map`.

A generator is a loop. The calls of a map are made one behind the other, or by a loop that stores what they give.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import gast

from pcbatch.errors import Span
from pcbatch.ir.types import TensorType
from pcbatch.reading.core import NeedsConstantError
from pcbatch.reading.counters import Counted, Loop, Turn, Turns
from pcbatch.reading.emitter import LoopNote
from pcbatch.reading.expressions import DEAD
from pcbatch.reading.generators import Generators
from pcbatch.reading.kinds import Kind
from pcbatch.reading.loops import FEW_TURNS
from pcbatch.reading.operations import builtin, library
from pcbatch.reading.several import blank
from pcbatch.reading.values import NONE, Generator, Host, Lane, Lazy, Range, Tuple, Value, is_none


class FirstSeenError(Exception):
    """A first item has been seen: no more of the loop is wanted."""

    def __init__(self, *kinds: Kind):
        self.kinds = kinds


AT_ONCE = 16
"""So many calls of a map are made at the same time, where there are more: each is written out, and compiled."""
WHY = "as each that is to be made at the same time as others is written out"


class Folds(Generators):
    """Built-in functions that take the items of a sequence together, and `pcbatch.map`."""

    # of parts above
    known_result: Callable[..., Host | None]

    def __init__(self, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self.maps: dict[Span | None, Kind] = {}
        """The kind of what the calls of a map give, by the place of the map."""

    def folded(self, value: Value, start: Value, step: Callable[[Value, Value], Value]) -> Value:
        """The items of a sequence, or of a generator whose length differs by lane, taken together."""
        if isinstance(value, Generator):
            return self.consumed(value, start, step)
        value = self.iterable(self.known(value))
        if isinstance(value, Range) or self.differs_in_length(value):
            return self._looped(value, start, step)
        if isinstance(value, Lazy) and not isinstance(self.lazy_length(value), Host):
            return self._looped(value, start, step)
        found = start
        for item in self.each(self.sequence(value)):
            found = step(found, item)
        return found

    def _slot(self, start: Value) -> tuple[int, str]:
        slot = (self.frame.number, f" total {self.number()}")
        self.state.names[slot] = start
        return slot

    def _looped(self, value: Value, start: Value, step: Callable[[Value, Value], Value]) -> Value:
        slot = self._slot(start)

        def bind(item: Value) -> None:
            if self.is_live:  # not of a list into which nothing has been put so far
                self.state.names[slot] = step(self.state.names[slot], item)

        self.over(value, None, bind, lambda: None, [])
        return self.state.names.pop(slot)

    def consumed(self, value: Generator, start: Value, step: Callable[[Value, Value], Value]) -> Value:
        """A generator that is gone over once: its loops are loops."""
        if isinstance(value.tree, gast.FunctionDef):
            return self._looped(value, start, step)

        def take(slot: tuple[int, str]) -> None:
            item = self.expression(value.tree.elt)
            if self.is_live:
                self.state.names[slot] = step(self.state.names[slot], item)

        return self._taken_together(value, start, take)

    def _taken_together(self, value: Generator, start: Value, take: Callable[[tuple[int, str]], None]) -> Value:
        """Return the content of a slot, `start` at first, into which each item of a generator is taken."""

        def consume() -> Value:
            slot = self._slot(start)
            node = value.tree
            frame = self._scoped(node)
            self.frames.append(frame)

            def into(generators: Sequence[Any], whole: Value | None) -> None:
                if not generators:
                    take(slot)
                    return
                generator, *rest = generators
                over = self.expression(generator.iter) if whole is None else whole

                def body() -> None:
                    self._only_if(slot, generator.ifs, lambda: into(rest, None))

                self.over(over, generator, lambda item: self.store(generator.target, item), body, [])

            try:
                into(node.generators, value.first)
            finally:
                self.frames.pop()
            self.leave(frame)
            return self.state.names.pop(slot) if self.is_live else NONE

        self.spend(value)
        return self.within_frame(value.frame, consume)

    def _only_if(self, slot: tuple[int, str], tests: Sequence[Any], what: Callable[[], None]) -> None:
        """Change what is in a slot, by `what`, if all tests hold."""
        if not tests:
            what()
            return
        found = self.condition(tests[0])
        if isinstance(found, Host):
            if found.value:
                self._only_if(slot, tests[1:], what)
            return
        before = self.state.names[slot]

        def then() -> Value:
            self._only_if(slot, tests[1:], what)
            now, self.state.names[slot] = self.state.names[slot], before
            return now

        chosen = self.choose(found, then, lambda: before)
        if self.is_live:
            self.state.names[slot] = chosen

    def call_sum(self, value: Value, start: Value | None = None) -> Value:
        value = self._flat(value, 0)
        type_ = self.type_of(value)
        if type_ is not None and type_.shape:
            total = self.emit(builtin("sum"), [self.pattern(self.read(value))])
            return total if start is None else self.binary(gast.Add, start, total)
        return self.folded(value, start or Host(0), lambda total, item: self.binary(gast.Add, total, item))

    def call_any(self, value: Value) -> Value:
        return self._truths(value, False)

    def call_all(self, value: Value) -> Value:
        return self._truths(value, True)

    def _flat(self, value: Value, neutral: Any) -> Value:
        """A slice of numbers whose length differs by lane as an array, with `neutral` outside of it; else `value`."""
        found = self.ragged(value)
        type_ = None if found is None else self.type_of(found.parts[0])
        return value if found is None or type_ is None or len(type_.shape) > 1 else self.filled(found, neutral)

    def _truths(self, value: Value, is_all: bool) -> Value:
        value = self._flat(value, is_all)
        type_ = self.type_of(value)
        if type_ is not None and type_.shape:
            return self.emit(builtin("all" if is_all else "any"), [self.pattern(self.read(value))])
        combined = self.both if is_all else self.either
        if isinstance(value, Generator):
            return self._consumed_lazily(value, is_all)
        return self.folded(value, Host(is_all), lambda so_far, item: combined(so_far, self.truth(item)))  # type: ignore[arg-type]

    def _consumed_lazily(self, value: Generator, is_all: bool) -> Value:
        """`any` and `all` of a generator end at the first item that decides."""
        if isinstance(value.tree, gast.FunctionDef):
            return self._until_decided(value, is_all)

        def take(slot: tuple[int, str]) -> None:
            so_far = self.state.names[slot]
            assert isinstance(so_far, Host | Lane)
            self.state.names[slot] = self.lazily(is_all, so_far, lambda: self.condition(value.tree.elt))

        return self._taken_together(value, Host(is_all), take)

    def _until_decided(self, value: Generator, is_all: bool) -> Value:
        slot, loop = self._slot(Host(is_all)), Loop(None, self.frame)

        def consume(item: Value) -> None:
            self.break_unless(self.truth(item) if is_all else self.negated(self.truth(item)), loop)

        self.spend(value)
        self.drive(value, consume, loop)
        for _, state in loop.breaks:
            state.names[slot] = Host(not is_all)
        self.join([*self._here(), *loop.breaks])
        return self.state.names.pop(slot) if self.is_live else NONE

    def call_max(self, *values: Value, key: Value | None = None, default: Value | None = None) -> Value:
        return self._extreme("max", gast.Gt, values, key, default)

    def call_min(self, *values: Value, key: Value | None = None, default: Value | None = None) -> Value:
        return self._extreme("min", gast.Lt, values, key, default)

    def _extreme(self, name: str, op: type, values: Sequence[Value], key: Value | None, default: Value | None) -> Value:
        if len(values) == 1:
            type_ = self.type_of(values[0])
            if type_ is not None and len(type_.shape) == 1 and key is None:
                return self.emit(builtin(name), [self.pattern(self.read(values[0]))])
            whole = self.iterable(self.known(values[0]))
            is_range = isinstance(whole, Host) and isinstance(whole.value, range)
            if isinstance(whole, Generator | Range | Lazy) or is_range or self.differs_in_length(whole):
                mark = self.mark()
                try:
                    items = self.sequence(whole)
                except NeedsConstantError:
                    items = None
                if items is None or len(items) > FEW_TURNS:
                    self.back_to(mark)
                    return self._extreme_by_turns(name, op, whole, key, default)
                values = items
            else:
                values = self.sequence(whole)
        if not values:
            if default is not None:
                return default
            raise self.refusal("PCB401", f"ValueError: {name}() of nothing")
        known = self.known_result(max if name == "max" else min, *values) if key is None and len(values) > 1 else None
        if known is not None:
            return known
        if key is None and all(self.type_of(each) is not None for each in values):
            if len(values) == 1:
                return values[0]
            return self.emit(builtin(name), [self.pattern(each) for each in values])
        with self.kept() as row:
            for value in self.each(values):
                row.append(value)
                row.append(value if key is None or is_none(key) else self.call_value(key, [row[-1]], {}))
                if len(row) == 2:
                    continue
                wins = self.truth(self.compare(op, row[3], row[1]))
                found, best, value, own = row
                if isinstance(wins, Lane):
                    found, best = self.chosen(wins, value, found), self.chosen(wins, own, best)
                elif wins.value:
                    found, best = value, own
                row.become(found, best)
            return self.known(row[0])

    def _extreme_by_turns(self, name: str, op: type, value: Value, key: Value | None, default: Value | None) -> Value:
        """The extreme of what a loop goes over; without any item it is the default, or a fault."""

        def keyed(item: Value) -> Value:
            return item if key is None or is_none(key) else self.call_value(key, [item], {})

        over = partial(self.consumed if isinstance(value, Generator) else self._looped, value)  # type: ignore[arg-type]
        first = self._first(over, keyed)

        def step(so_far: Value, item: Value) -> Value:
            assert isinstance(so_far, Tuple)
            some, best, known = so_far.items
            own = keyed(item)
            wins = self.either(self.negated(self.truth(some)), self.truth(self.compare(op, own, known)))
            if isinstance(wins, Host):
                return Tuple((Host(True), item, own)) if wins.value else so_far
            chosen = self.choose(wins, lambda: Tuple((item, own)), lambda: Tuple((best, known)))
            assert isinstance(chosen, Tuple)
            return Tuple((Host(True), *chosen.items))

        found = over(Tuple((Host(False), *first)), step)
        if not self.is_live:
            return NONE
        assert isinstance(found, Tuple)
        some, best, _ = found.items
        there = self.truth(some)
        if default is not None:
            return best if isinstance(there, Host) else self.choose(there, lambda: best, lambda: default)
        self.require(there, f"ValueError: {name}() arg is an empty sequence")
        return best

    def _first(self, over: Callable[..., Value], keyed: Callable[[Value], Value]) -> tuple[Value, Value]:
        """Zeros like the first item of a sequence and its key, which nobody reads: found by a turn that is dropped."""
        mark = self.mark()

        def seen(so_far: Value, item: Value) -> Value:
            raise FirstSeenError(*map(self.kind_of_item, (item, keyed(item))))

        try:
            over(NONE, seen)
        except FirstSeenError as found:
            self.back_to(mark)
            item, key = (self.made_of(kind, self._blanks(kind), []) for kind in found.kinds)
            return item, key
        return NONE, NONE

    def _blanks(self, kind: Kind) -> Iterator[Value]:
        """Zeros for the numbers and arrays of a kind, and some word for each that differs by lane."""
        if kind.form == "lane":
            yield self.zero_of(kind.type)
        elif kind.form == "word":
            yield Host(kind.keys[0])
        elif kind.form == "optional":
            yield Host(True)
            yield from self._blanks(kind.items[1])
        else:
            for item in kind.items:
                yield from self._blanks(item)

    def zero_of(self, type_: TensorType) -> Value:
        """A zero of a type."""
        return blank(Lane("", type_))

    def kind_of_item(self, value: Value) -> Kind:
        """The kind of what a loop takes."""
        return self.kind_of_element(value, [])

    def _mapped(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """`pcbatch.map`: calls one behind the other, or a loop that stores what they give."""
        what, *over = arguments
        if not over:
            raise self.refusal(
                "PCB556", "`pcbatch.map` needs something to go over", "write `pcbatch.map(function, array)`"
            )
        if unknown := [name for name in keywords if name != "count"]:
            message = f"TypeError: map() got an unexpected keyword argument '{unknown[0]}'"
            raise self.refusal("PCB401", message, "its only option is `count`: `pcbatch.map(f, xs, count=n)`")
        sizes = {self.constant(self.length(each), "how many elements there are") for each in over}
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
            help = "let the calls give numbers, arrays, and tuples, lists, dicts and objects of these"
            raise self.refusal("PCB426", f"{self.described(value)} cannot be a row of an array", help)
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
