"""Built-in functions of Python's, and pcbatch's own functions, as the reader interprets them."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import gast
import numpy as np

from pcbatch.ir.debugging import ENTRY, number_of
from pcbatch.reading.calls import Calls
from pcbatch.reading.core import NeedsConstantError
from pcbatch.reading.expressions import DEAD
from pcbatch.reading.loops import FEW_TURNS
from pcbatch.reading.operations import builtin, library
from pcbatch.reading.values import (
    NONE,
    Function,
    Generator,
    Host,
    Lane,
    Lazy,
    OneOf,
    Range,
    Ref,
    Tuple,
    Value,
)

SYNC = ("pcbatch.function.hints", "sync")
DEBUG = ("pcbatch.function.hints", "debug")
MAP = ("pcbatch.runtime.backends.tensorflow.mapping", "map")


CONSUMERS = (len, sum, any, all, min, max)


def _path(value: Any) -> tuple[str, str]:
    return getattr(value, "__module__", "") or "", getattr(value, "__name__", "") or ""


class Builtins(Calls):
    """Python's built-in functions."""

    def builtin_of(self, function: Any) -> Callable[..., Value] | None:
        try:
            name = _NAMES.get(function)
        except TypeError:
            return None
        return None if name is None else getattr(self, f"call_{name}")

    def special(self, function: Value, node: Any) -> Value | None:
        if not isinstance(function, Host):
            return None
        path = _path(function.value)
        if function.value in CONSUMERS and len(node.args) == 1 and isinstance(node.args[0], gast.ListComp):
            return self._of_list(function, node)
        if function.value is bool and len(node.args) == 1 and not isinstance(node.args[0], gast.Starred):
            return self.condition(node.args[0])
        if path == SYNC:
            block = self.emitter.block()
            block.sync = True
            self.emitter.jump(block, self.span())
            self.emitter.enter(block)
            return NONE
        if path == DEBUG:
            return self._debug(node)
        if path == MAP:
            return self._mapped(function, self.evaluated(node.args), self._keywords(node))
        return None

    # -- pcbatch.map ---------------------------------------------------------------------------------------------------

    def _mapped(self, function: Host, arguments: Sequence[Value], keywords: dict[str, Value]) -> Value:
        """`pcbatch.map`: calls one behind the other, or a loop that stores what they give."""
        what, *over = arguments
        if not over:
            self.refuse("PCB556", "`pcbatch.map` needs something to go over: `pcbatch.map(function, array)`")
        lengths = [self.length(each) for each in over]
        sizes = {self.constant(each, "how many elements there are") for each in lengths}
        if len(sizes) > 1:
            self.refuse("PCB401", "ValueError: zip() of sequences of several lengths")
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
            self.refuse("PCB426", f"{self.described(value)} cannot be a row of an array")
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

    def _of_list(self, function: Host, node: Any) -> Value | None:
        """A list that is made, counted or added up, and forgotten: its length may differ by lane."""
        mark = self.mark()
        try:
            self.expression(node.args[0])
            return None
        except NeedsConstantError:
            pass
        finally:
            self.back_to(mark)
        generator = Generator(node.args[0], self.frame)
        keywords = self._keywords(node)
        if function.value is len:
            return self._consumed(generator, Host(0), lambda count, _: self.binary(gast.Add, count, Host(1)))
        return self.call_value(function, [generator], keywords)

    def _debug(self, node: Any) -> Value:
        text, *values = self.evaluated(node.args)
        assert isinstance(text, Host)
        span = self.span()
        number = number_of(text.value, span)
        given = [number, text.value, *map(self.pattern, values)]
        self.emit(builtin(ENTRY), given, hint="entry")
        return NONE

    # -- numbers -------------------------------------------------------------------------------------------------------

    def _known(self, function: Any, *values: Value) -> Host | None:
        """What a function gives of values that are all known and no arrays."""
        values = tuple(self.read(self.known(each)) for each in values)
        if not all(isinstance(each, Host) and not self.is_array(each.value) for each in values):
            return None
        try:
            return Host(function(*(each.value for each in values)))  # type: ignore[union-attr]
        except Exception as error:  # noqa: BLE001 - whatever Python says
            self.refuse("PCB401", f"{type(error).__name__}: {error}")

    def call_abs(self, value: Value) -> Value:
        found = self.method_of(value, "__abs__")
        if found is not None:
            return self.call_value(found, [], {})
        return self._known(abs, value) or self.emit(builtin("abs"), [self.pattern(value)])

    def call_float(self, *values: Value) -> Value:
        return self._known(float, *values) or self.emit(builtin("float"), [self.pattern(each) for each in values])

    def call_int(self, *values: Value) -> Value:
        return self._known(int, *values) or self.emit(builtin("int"), [self.pattern(each) for each in values])

    def call_bool(self, *values: Value) -> Value:
        return self.truth(values[0]) if values else Host(False)

    def call_round(self, value: Value, ndigits: Value | None = None) -> Value:
        given = [value] if ndigits is None else [value, ndigits]
        return self._known(round, *given) or self.emit(builtin("round"), [self.pattern(each) for each in given])

    def call_divmod(self, a: Value, b: Value) -> Value:
        known = self._known(divmod, a, b) if not self._is_zero(b) else None
        if known is not None:
            return self.host(known.value)
        return self.emit(builtin("divmod"), [self.pattern(a), self.pattern(b)])

    def _is_zero(self, value: Value) -> bool:
        return isinstance(value, Host) and not value.value

    def call_pow(self, base: Value, exp: Value, mod: Value | None = None) -> Value:
        if mod is None:
            return self.binary(gast.Pow, base, exp)
        known = self._known(pow, base, exp, mod)
        return known or self.emit(builtin("pow"), [self.pattern(each) for each in (base, exp, mod)])

    def call_complex(self, *values: Value) -> Value:
        return self._known(complex, *values) or self.emit(
            library(complex, "complex", self.backend.equivalent(complex), is_steady=True), [self.pattern(each) for each in values]
        )

    def call_len(self, value: Value) -> Value:
        return self.length(value)

    # -- sequences -----------------------------------------------------------------------------------------------------

    def call_range(self, *values: Value) -> Value:
        values = tuple(self.read(self.known(each)) for each in values)
        if all(isinstance(each, Host) for each in values):
            try:
                return Host(range(*(each.value for each in values)))  # type: ignore[union-attr]
            except TypeError as error:
                self.refuse("PCB109", f"TypeError: {error}")
            except ValueError as error:
                self.refuse("PCB109", f"ValueError: {error}")
        start, stop, step = {
            1: lambda: (Host(0), values[0], Host(1)),
            2: lambda: (values[0], values[1], Host(1)),
            3: lambda: values,
        }[len(values)]()
        whole = [each if isinstance(each, Host) else self._whole(each) for each in (start, stop, step)]
        if not isinstance(step, Host):
            self.require(self.truth(self.compare(gast.NotEq, step, Host(0))), "ValueError: range() arg 3 must not be zero")
        return Range(*whole)

    def _whole(self, value: Value) -> Value:
        if not self.is_whole(value):
            type_ = self.type_of(value)
            self.refuse("PCB109", f"a range takes integers, not {type_ or self.described(value)}", "write int(..)")
        type_ = self.type_of(value)
        if type_ is not None and type_.dtype == "bool":
            return self.emit(builtin("int"), [self.pattern(value)])
        return value

    def call_enumerate(self, value: Value, start: Value | None = None) -> Value:
        first = start or Host(0)
        if self._goes_by_counter(value):
            return Lazy("enumerate", (value, first))
        items = [Tuple((self.binary(gast.Add, Host(k), first), item)) for k, item in enumerate(self.sequence(value))]
        return Tuple(tuple(items))

    def _goes_by_counter(self, value: Value) -> bool:
        value = self.known(value)
        if isinstance(value, Lazy | Range) or (isinstance(value, Host) and isinstance(value.value, range)):
            return True
        if self.is_bounded(value):
            return True
        type_ = self.type_of(value)
        return type_ is not None and bool(type_.shape)

    def call_zip(self, *values: Value, strict: Value | None = None) -> Value:
        if values and all(map(self._goes_by_counter, values)):
            found = Lazy("zip", values)
            if strict is not None and self.constant(strict, "strict"):
                self._all_equal(values)
            return found
        rows = [self._some(each, values) for each in values]
        if strict is not None and self.constant(strict, "strict") and len({len(row) for row in rows}) > 1:
            self.refuse("PCB401", "ValueError: zip() of sequences of several lengths")
        return Tuple(tuple(Tuple(row) for row in zip(*rows, strict=False)))

    def _all_equal(self, values: Sequence[Value]) -> None:
        lengths = [self.lazy_length(each) for each in values]
        known = {each.value for each in lengths if isinstance(each, Host)}
        if len(known) > 1:
            self.refuse("PCB401", "ValueError: zip() of sequences of several lengths")

    def _some(self, value: Value, others: Sequence[Value]) -> list[Value]:
        """The items of a sequence beside others of known lengths, of which it may have fewer or more."""
        if isinstance(value, Range):
            least = min(len(self.sequence(each)) for each in others if not isinstance(each, Range))
            return [self.lazy_item(value, Host(k)) for k in range(least)]
        return self.sequence(value) if not isinstance(value, Lazy) else self._of_lazy(value)

    def _of_lazy(self, value: Lazy) -> list[Value]:
        length = self.lazy_length(value)
        if not isinstance(length, Host):
            self.needs_constant("PCB130", "how many items there are differs by lane")
        return [self.lazy_item(value, Host(k)) for k in range(length.value)]

    def sequence(self, value: Value) -> list[Value]:
        if isinstance(value, Lazy):
            return self._of_lazy(value)
        return super().sequence(value)

    def call_reversed(self, value: Value) -> Value:
        if self._goes_by_counter(value):
            return Lazy("reversed", (value,))
        return Tuple(tuple(reversed(self.sequence(value))))

    def call_tuple(self, value: Value | None = None) -> Value:
        return Tuple(()) if value is None else Tuple(tuple(self.sequence(value)))

    def call_list(self, value: Value | None = None) -> Value:
        return self.new("list", () if value is None else tuple(self.sequence(value)))

    def call_dict(self, value: Value | None = None, **keywords: Value) -> Value:
        return self.new("dict", {**({} if value is None else self.entries(value)), **keywords})

    def call_set(self, value: Value | None = None) -> Value:
        keys = [] if value is None else [self.constant(each, "an element of a set") for each in self.sequence(value)]
        return self.new("set", dict.fromkeys(keys, NONE))

    def call_map(self, function: Value, *values: Value) -> Value:
        rows = zip(*(self.sequence(each) for each in values), strict=False)
        return Tuple(tuple(self.call_value(function, list(row), {}) for row in rows))

    def call_filter(self, function: Value, value: Value) -> Value:
        kept = []
        for item in self.sequence(value):
            found = self.truth(item if _is_none(function) else self.call_value(function, [item], {}))
            if isinstance(found, Lane):
                self.needs_constant("PCB130", "whether an element is kept differs by lane")
            if found.value:
                kept.append(item)
        return Tuple(tuple(kept))

    def call_sorted(self, value: Value, key: Value | None = None, reverse: Value | None = None) -> Value:
        named = {name: each for name, each in (("key", key), ("reverse", reverse)) if each is not None}
        return self.in_order(value, named)

    def in_order(self, value: Value, keywords: dict[str, Value]) -> Value:
        items = self.sequence(value)
        key = keywords.get("key")
        keys = items if key is None or _is_none(key) else [self.call_value(key, [item], {}) for item in items]
        is_reversed = bool(self.constant(keywords["reverse"], "reverse")) if "reverse" in keywords else False
        if all(isinstance(each, Host) or self._is_constant(each) for each in keys):
            plain = [self.constant(each, "a key") for each in keys]
            order = sorted(range(len(items)), key=plain.__getitem__, reverse=is_reversed)
            return self.new("list", tuple(items[k] for k in order))
        if keys is items and all(self.type_of(each) is not None for each in items):
            given = {"reverse": True} if is_reversed else {}
            return self.emit(builtin("sorted"), [[self.pattern(each) for each in items]], given)
        return self.new("list", tuple(self._exchanged(items, keys, is_reversed)))

    def _is_constant(self, value: Value) -> bool:
        return isinstance(value, Tuple) and all(isinstance(each, Host) or self._is_constant(each) for each in value.items)

    def _exchanged(self, items: list[Value], keys: list[Value], is_reversed: bool) -> list[Value]:
        """Items in the order of their keys: neighbours are exchanged, as in Python's stable order."""
        rows = [Tuple((key, item)) for key, item in zip(keys, items, strict=True)]
        op = gast.Lt if is_reversed else gast.Gt
        for end in range(len(rows) - 1, 0, -1):
            for k in range(end):
                a, b = rows[k], rows[k + 1]
                swap = self.truth(self.compare(op, a.items[0], b.items[0]))
                if isinstance(swap, Host):
                    if swap.value:
                        rows[k], rows[k + 1] = b, a
                    continue
                first, second = (
                    self.choose(swap, lambda x=x: x, lambda y=y: y) for x, y in ((b, a), (a, b))
                )
                assert isinstance(first, Tuple) and isinstance(second, Tuple)
                rows[k], rows[k + 1] = first, second
        return [row.items[1] for row in rows]

    # -- folds ---------------------------------------------------------------------------------------------------------

    def _folded(self, value: Value, start: Value, step: Callable[[Value, Value], Value]) -> Value:
        """The items of a sequence, or of a generator whose length differs by lane, taken together."""
        if isinstance(value, Generator):
            return self._consumed(value, start, step)
        value = self.known(value)
        if isinstance(value, Range) or self.is_bounded(value):
            return self._looped(value, start, step)
        if isinstance(value, Lazy) and not isinstance(self.lazy_length(value), Host):
            return self._looped(value, start, step)
        found = start
        for item in self.sequence(value):
            found = step(found, item)
        return found

    def _slot(self, start: Value) -> tuple[int, str]:
        slot = (self.frame.number, f"total_{self.number()}")
        self.state.names[slot] = start
        return slot

    def _looped(self, value: Value, start: Value, step: Callable[[Value, Value], Value]) -> Value:
        slot = self._slot(start)

        def bind(item: Value) -> None:
            self.state.names[slot] = step(self.state.names[slot], item)

        self.over(value, None, bind, lambda: None, [])
        return self.state.names.pop(slot)

    def _consumed(self, value: Generator, start: Value, step: Callable[[Value, Value], Value]) -> Value:
        """A generator that is gone over once: its loops are loops."""

        def consume() -> Value:
            slot = self._slot(start)
            outer = self.frame
            node = value.tree
            first = self.expression(node.generators[0].iter)
            frame = self._scoped(node)
            self.frames.append(frame)

            def into(generators: Sequence[Any], whole: Value | None) -> None:
                if not generators:
                    item = self.expression(node.elt)
                    if self.is_live:
                        self.state.names[slot] = step(self.state.names[slot], item)
                    return
                generator, *rest = generators
                over = self.expression(generator.iter) if whole is None else whole

                def body() -> None:
                    self._only_if(generator.ifs, lambda: into(rest, None))

                self.over(over, generator, lambda item: self.store(generator.target, item), body, [])

            try:
                into(node.generators, first)
            finally:
                self.frames.pop()
            self.leave(frame)
            assert self.frame is outer
            return self.state.names.pop(slot) if self.is_live else NONE

        return self.within_frame(value.frame, consume)  # type: ignore[no-any-return]

    def _only_if(self, tests: Sequence[Any], what: Callable[[], None]) -> None:
        if not tests:
            what()
            return
        found = self.condition(tests[0])
        if isinstance(found, Host):
            if found.value:
                self._only_if(tests[1:], what)
            return

        def then() -> None:
            self._only_if(tests[1:], what)

        self.fork(found, [then, lambda: None])

    def call_sum(self, value: Value, start: Value | None = None) -> Value:
        type_ = self.type_of(value)
        if type_ is not None and type_.shape:
            total = self.emit(builtin("sum"), [self.pattern(self.read(value))])
            return total if start is None else self.binary(gast.Add, start, total)
        return self._folded(value, start or Host(0), lambda total, item: self.binary(gast.Add, total, item))

    def call_any(self, value: Value) -> Value:
        return self._truths(value, False)

    def call_all(self, value: Value) -> Value:
        return self._truths(value, True)

    def _truths(self, value: Value, is_all: bool) -> Value:
        type_ = self.type_of(value)
        if type_ is not None and type_.shape:
            return self.emit(builtin("all" if is_all else "any"), [self.pattern(self.read(value))])
        combined = self.both if is_all else self.either
        if isinstance(value, Generator):
            return self._consumed_lazily(value, is_all)
        return self._folded(value, Host(is_all), lambda so_far, item: combined(so_far, self.truth(item)))  # type: ignore[arg-type]

    def _consumed_lazily(self, value: Generator, is_all: bool) -> Value:
        """`any` and `all` of a generator end at the first item that decides."""

        def consume() -> Value:
            node = value.tree
            slot = self._slot(Host(is_all))
            frame = self._scoped(node)
            first = self.expression(node.generators[0].iter)
            self.frames.append(frame)

            def into(generators: Sequence[Any], whole: Value | None) -> None:
                if not generators:
                    so_far = self.state.names[slot]
                    assert isinstance(so_far, Host | Lane)
                    self.state.names[slot] = self.lazily(is_all, so_far, lambda: self.condition(node.elt))
                    return
                generator, *rest = generators
                over = self.expression(generator.iter) if whole is None else whole

                def body() -> None:
                    self._only_if(generator.ifs, lambda: into(rest, None))

                self.over(over, generator, lambda item: self.store(generator.target, item), body, [])

            try:
                into(node.generators, first)
            finally:
                self.frames.pop()
            self.leave(frame)
            return self.state.names.pop(slot) if self.is_live else NONE

        return self.within_frame(value.frame, consume)  # type: ignore[no-any-return]

    def call_max(self, *values: Value, key: Value | None = None, default: Value | None = None) -> Value:
        return self._extreme("max", gast.Gt, values, key, default)

    def call_min(self, *values: Value, key: Value | None = None, default: Value | None = None) -> Value:
        return self._extreme("min", gast.Lt, values, key, default)

    def _extreme(
        self, name: str, op: type, values: Sequence[Value], key: Value | None, default: Value | None
    ) -> Value:
        if len(values) == 1:
            type_ = self.type_of(values[0])
            if type_ is not None and len(type_.shape) == 1 and key is None:
                return self.emit(builtin(name), [self.pattern(self.read(values[0]))])
            whole = self.known(values[0])
            if isinstance(whole, Generator | Range | Lazy) or (isinstance(whole, Host) and isinstance(whole.value, range)):
                mark = self.mark()
                try:
                    items = self.sequence(whole)
                except NeedsConstantError:
                    self.back_to(mark)
                    return self._extreme_by_turns(name, op, whole, key, default)
                if len(items) > FEW_TURNS:
                    self.back_to(mark)
                    return self._extreme_by_turns(name, op, whole, key, default)
                values = items
            else:
                values = self.sequence(whole)
        if not values:
            if default is not None:
                return default
            self.refuse("PCB401", f"ValueError: {name}() of nothing")
        if key is None and all(isinstance(each, Host) for each in values):
            known = self._known(max if name == "max" else min, *values) if len(values) > 1 else values[0]
            assert known is not None
            return known
        if key is None and all(self.type_of(each) is not None for each in values):
            if len(values) == 1:
                return values[0]
            return self.emit(builtin(name), [self.pattern(each) for each in values])
        found = values[0]
        best = found if key is None or _is_none(key) else self.call_value(key, [found], {})
        for value in values[1:]:
            own = value if key is None or _is_none(key) else self.call_value(key, [value], {})
            wins = self.truth(self.compare(op, own, best))
            if isinstance(wins, Host):
                found, best = (value, own) if wins.value else (found, best)
                continue
            chosen = self.choose(wins, lambda v=value, o=own: Tuple((v, o)), lambda v=found, o=best: Tuple((v, o)))
            assert isinstance(chosen, Tuple)
            found, best = (self.known(each) for each in chosen.items)
        return found

    def _extreme_by_turns(
        self, name: str, op: type, value: Value, key: Value | None, default: Value | None
    ) -> Value:
        """The extreme of what a loop goes over; without any item it is the default, or a fault."""

        def keyed(item: Value) -> Value:
            return item if key is None or _is_none(key) else self.call_value(key, [item], {})

        def over(start: Value, step: Callable[[Value, Value], Value]) -> Value:
            if isinstance(value, Generator):
                return self._consumed(value, start, step)
            return self._looped(value, start, step)

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
            raise _Seen(self._blank_like(item), self._blank_like(keyed(item)))

        try:
            over(NONE, seen)
        except _Seen as found:
            self.back_to(mark)
            return found.values
        return NONE, NONE

    def _blank_like(self, value: Value) -> Value:
        """Zeros of the kind of a value."""
        value = self.read(self.known(value))
        type_ = self.type_of(value)
        if type_ is not None:
            if isinstance(value, Host):
                return value
            return Host(np.zeros(type_.shape, type_.dtype)) if not type_.weak else Host(0 if "int" in type_.dtype else 0.0)
        if isinstance(value, Tuple):
            return dataclasses.replace(value, items=tuple(map(self._blank_like, value.items)))
        return value

    # -- what values are -----------------------------------------------------------------------------------------------

    def call_isinstance(self, value: Value, classes: Value) -> Value:
        value, wanted = self.known(value), self._classes(classes)
        cls = self._class_of(value)
        return Host(issubclass(cls, wanted))

    def _classes(self, value: Value) -> Any:
        return self.constant(value, "a class")

    def _class_of(self, value: Value) -> type:
        match value:
            case Tuple(_, cls):
                return cls or tuple
            case Ref():
                cell = self.state.cell(value)
                kinds: dict[str, type] = {"list": list, "dict": dict, "set": set}
                if cell.kind in kinds:
                    return kinds[cell.kind]
                if cell.cls is not None:
                    return cell.cls
            case Function():
                return type(lambda: 0)
            case OneOf(items=items):
                return self._class_of(items[0])
            case Host(host) if not self.is_array(host):
                return type(host)
        type_ = self.type_of(value)
        if type_ is not None and not type_.shape:
            if type_.dtype == "bool":
                return bool
            return int if "int" in type_.dtype else complex if "complex" in type_.dtype else float
        self.refuse("PCB120", "what class an array has depends on how it is represented")

    def call_type(self, value: Value) -> Value:
        return Host(self._class_of(self.known(value)))

    def call_hasattr(self, value: Value, name: Value) -> Value:
        text = self.constant(name, "a name")
        cell = self.cell(self.known(value))
        if cell is not None and cell.kind == "object":
            return Host(text in cell.items or hasattr(cell.cls, text))
        if isinstance(value, Host):
            return Host(hasattr(value.value, text))
        self.refuse("PCB120", "what attributes a value has depends on how it is represented")

    def call_getattr(self, value: Value, name: Value, default: Value | None = None) -> Value:
        if default is not None:
            found = self.call_hasattr(value, name)
            assert isinstance(found, Host)
            if not found.value:
                return default
        return self.attribute(value, self.constant(name, "a name"))

    def call_setattr(self, value: Value, name: Value, new: Value) -> Value:
        self.set_attribute(value, self.constant(name, "a name"), new)
        return NONE

    def call_id(self, value: Value) -> Value:
        self.refuse("PCB120", "an identity is no number of a lane", "compare with `is`")

    def call_print(self, *values: Value, **options: Value) -> Value:
        self.refuse("PCB119", "`print` would print once, while the function is compiled", "write pcbatch.debug(..)")

    def call_str(self, value: Value | None = None) -> Value:
        return Host("") if value is None else Host(str(self.constant_text(self.read(self.known(value)))))

    def call_repr(self, value: Value) -> Value:
        return Host(repr(self.constant_text(self.read(self.known(value)))))

    # -- of modules ----------------------------------------------------------------------------------------------------

    def call_copy(self, value: Value) -> Value:
        """`copy.copy`."""
        value = self.known(value)
        type_ = self.type_of(value)
        if type_ is not None:
            return self.read(value)
        cell = self.cell(value)
        return value if cell is None else self.new(cell.kind, cell.items, cell.cls)

    def call_deepcopy(self, value: Value) -> Value:
        """`copy.deepcopy`."""
        made: dict[int, Ref] = {}

        def deep(each: Value) -> Value:
            if self.type_of(each) is not None:
                return self.read(each)
            if isinstance(each, Tuple):
                return dataclasses.replace(each, items=tuple(map(deep, each.items)))
            cell = self.cell(each)
            if cell is None or not isinstance(each, Ref):
                return each
            if each.cell not in made:
                made[each.cell] = self.new(cell.kind, cell.items, cell.cls)
                found = cell.with_parts(lambda _, part: deep(part))
                self.state.set_cell(made[each.cell], items=found.items)
            return made[each.cell]

        return deep(self.known(value))

    def call_replace(self, value: Value, **changes: Value) -> Value:
        """`dataclasses.replace`."""
        cell = self.cell(self.known(value))
        if cell is None or not dataclasses.is_dataclass(cell.cls):
            self.refuse("PCB401", "TypeError: replace() takes an object of a dataclass")
        return self.call_value(Host(cell.cls), [], {**cell.items, **changes})

    def call_reduce(self, function: Value, value: Value, initial: Value | None = None) -> Value:
        """`functools.reduce`."""
        items = self.sequence(value)
        found = items.pop(0) if initial is None else initial
        for item in items:
            found = self.call_value(function, [found, item], {})
        return found

    def call_operator(self, op: type) -> Callable[..., Value]:
        """An operator as a function of `operator`."""
        return lambda a, b: self.binary(op, a, b)


class _Seen(Exception):  # noqa: N818 - no error
    """A first item has been seen."""

    def __init__(self, *values: Value):
        self.values: Any = values


def _is_none(value: Value | None) -> bool:
    return isinstance(value, Host) and value.value is None


_NAMES: dict[Any, str] = {
    getattr(builtins, name): name
    for name in (
        "abs all any bool complex dict divmod enumerate filter float getattr hasattr id int isinstance len list map max "
        "min pow print range repr reversed round set setattr sorted str sum tuple type zip"
    ).split()
} | {
    copy.copy: "copy",
    copy.deepcopy: "deepcopy",
    dataclasses.replace: "replace",
    functools.reduce: "reduce",
}
OPERATORS = operator
