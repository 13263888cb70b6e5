"""Built-in functions that give sequences: ranges, `zip`, `sorted`, containers of other ones."""

from __future__ import annotations

from collections.abc import Sequence

import gast

from pcbatch.reading.calls import Calls
from pcbatch.reading.operations import builtin
from pcbatch.reading.values import (
    NONE,
    Host,
    Lane,
    Lazy,
    Range,
    Tuple,
    Value,
    is_none,
)


class Sequences(Calls):
    """Sequences."""

    def call_range(self, *values: Value) -> Value:
        values = tuple(self.read(self.known(each)) for each in values)
        if all(isinstance(each, Host) for each in values):
            try:
                return Host(range(*[each.value for each in values if isinstance(each, Host)]))
            except TypeError as error:
                raise self.refusal("PCB109", f"TypeError: {error}") from None
            except ValueError as error:
                raise self.refusal("PCB109", f"ValueError: {error}") from None
        start = Host(0) if len(values) == 1 else values[0]
        stop = values[0] if len(values) == 1 else values[1]
        step = values[2] if len(values) == 3 else Host(1)
        whole = [each if isinstance(each, Host) else self._whole(each) for each in (start, stop, step)]
        if not isinstance(step, Host):
            self.require(
                self.truth(self.compare(gast.NotEq, step, Host(0))), "ValueError: range() arg 3 must not be zero"
            )
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
            raise self.refusal("PCB401", "ValueError: zip() of sequences of several lengths")
        return Tuple(tuple(Tuple(row) for row in zip(*rows, strict=False)))

    def _all_equal(self, values: Sequence[Value]) -> None:
        lengths = [self.lazy_length(each) for each in values]
        known = {each.value for each in lengths if isinstance(each, Host)}
        if len(known) > 1:
            raise self.refusal("PCB401", "ValueError: zip() of sequences of several lengths")

    def _some(self, value: Value, others: Sequence[Value]) -> list[Value]:
        """The items of a sequence beside others of known lengths, of which it may have fewer or more."""
        if isinstance(value, Range):
            least = min(len(self.sequence(each)) for each in others if not isinstance(each, Range))
            return [self.lazy_item(value, Host(k)) for k in range(least)]
        return self.sequence(value) if not isinstance(value, Lazy) else self._of_lazy(value)

    def _of_lazy(self, value: Lazy) -> list[Value]:
        length = self.lazy_length(value)
        if not isinstance(length, Host):
            raise self.no_constant("PCB130", "how many items there are differs by lane")
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
        for item in self.each(self.sequence(value)):
            found = self.truth(item if is_none(function) else self.call_value(function, [item], {}))
            if isinstance(found, Lane):
                raise self.no_constant("PCB130", "whether an element is kept differs by lane")
            if found.value:
                kept.append(item)
        return Tuple(tuple(kept))

    def call_sorted(self, value: Value, key: Value | None = None, reverse: Value | None = None) -> Value:
        named = {name: each for name, each in (("key", key), ("reverse", reverse)) if each is not None}
        return self.in_order(value, named)

    def in_order(self, value: Value, keywords: dict[str, Value]) -> Value:
        items = self.sequence(value)
        key = keywords.get("key")
        keys = items if key is None or is_none(key) else [self.call_value(key, [item], {}) for item in items]
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
        return isinstance(value, Tuple) and all(
            isinstance(each, Host) or self._is_constant(each) for each in value.items
        )

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
                first, second = self.chosen(swap, b, a), self.chosen(swap, a, b)
                assert isinstance(first, Tuple) and isinstance(second, Tuple)
                rows[k], rows[k + 1] = first, second
        return [row.items[1] for row in rows]
