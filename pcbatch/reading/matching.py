"""`match` statements, and tail calls: a function's last call is one, also where it stands in an arm or behind `or`."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gast

from pcbatch.reading.contexts import Contexts
from pcbatch.reading.expressions import Ends
from pcbatch.reading.meeting import End
from pcbatch.reading.values import NONE, Host, Lane, Optional, Ref, Tuple, Value

STRUCTURES = (gast.MatchSequence, gast.MatchMapping, gast.MatchClass)
"""Patterns that None does not match."""


class Matching(Contexts):
    """`match` and `return`."""

    def visit_Match(self, node: Any) -> None:
        subject = self.expression(node.subject)
        slot = (self.frame.number, f" subject {self.number()}")
        self.state.names[slot] = subject
        self._cases(slot, node.cases)
        self.state.names.pop(slot, None)

    def _cases(self, slot: tuple[int, str], cases: Sequence[Any]) -> None:
        if not cases or not self.is_live:
            return
        case, *rest = cases
        bindings: dict[str, Value] = {}
        before, self.node = self.node, case.pattern
        try:
            found = self.matches(case.pattern, self.state.names[slot], bindings)
        finally:
            self.node = before
        if isinstance(found, Host) and not found.value:
            self._cases(slot, rest)
            return
        if case.guard is None:
            if isinstance(found, Host):
                self._bound_case(bindings, case)
                return
            self.fork(found, [lambda: self._bound_case(bindings, case), lambda: self._cases(slot, rest)])
            return
        if not bindings:
            found = self.lazily(True, found, lambda: self.condition(case.guard))
            self.either_way(self.ends_of(found), [lambda: self.statements(case.body), lambda: self._cases(slot, rest)])
            return
        ends = self.ends_of(found)
        self.join(ends.true)
        for name, value in bindings.items():
            self.assign(name, value)
        decided = self.ends_of(self.decided(case.guard))
        self.either_way(
            Ends(decided.true, [*ends.false, *decided.false]),
            [lambda: self.statements(case.body), lambda: self._cases(slot, rest)],
        )

    def _bound_case(self, bindings: dict[str, Value], case: Any) -> None:
        """The body of a case whose pattern matches: names of the pattern are bound then."""
        for name, value in bindings.items():
            self.assign(name, value)
        self.statements(case.body)

    def matches(self, pattern: Any, value: Value, bindings: dict[str, Value]) -> Host | Lane:
        """Return whether a value matches a pattern; `bindings` gets the names that it binds then."""
        value = self.known(value)
        if isinstance(value, Optional) and isinstance(pattern, STRUCTURES):
            return self.both(value.there, self.matches(pattern, value.content, bindings))
        match pattern:
            case gast.MatchValue(value=node):
                return self.truth(self.compare(gast.Eq, value, self.expression(node)))
            case gast.MatchSingleton(value=single):
                return self.is_one(self.read(value), Host(single))
            case gast.MatchAs(pattern=None, name=name):
                if name is not None:
                    bindings[name] = value
                return Host(True)
            case gast.MatchAs(pattern=inner, name=name):
                found = self.matches(inner, value, bindings)
                bindings[name] = value
                return found
            case gast.MatchOr(patterns=patterns):
                found = Host(False)
                for each in patterns:
                    own: dict[str, Value] = {}
                    matched = self.matches(each, value, own)
                    for name, bound in own.items():
                        if isinstance(matched, Lane) and name in bindings:
                            bindings[name] = self.chosen(matched, bound, bindings[name])
                        elif isinstance(matched, Lane) or matched.value:
                            bindings.setdefault(name, bound)
                    found = self.either(found, matched)
                return found
            case gast.MatchSequence(patterns=patterns):
                return self._sequence_matches(patterns, value, bindings)
            case gast.MatchMapping(keys=keys, patterns=patterns, rest=rest):
                return self._entries_match(keys, patterns, rest, value, bindings)
            case gast.MatchClass(cls=cls, patterns=patterns, kwd_attrs=names, kwd_patterns=named):
                return self._class_matches(cls, patterns, names, named, value, bindings)
        raise AssertionError(pattern)

    def _sequence_matches(self, patterns: Sequence[Any], value: Value, bindings: dict[str, Value]) -> Host | Lane:
        type_ = self.type_of(value)
        is_of = isinstance(value, Ref) and issubclass(self._class_of(value), list | collections.deque)
        if not (isinstance(value, Tuple) or is_of or (type_ is not None and bool(type_.shape))):
            return Host(False)
        value = self.iterable(value)
        if self.is_list(value):
            return self._rows_match(patterns, value, bindings)
        items = self.sequence(value)
        stars = [place for place, each in enumerate(patterns) if isinstance(each, gast.MatchStar)]
        if len(items) != len(patterns) and not (stars and len(items) >= len(patterns) - 1):
            return Host(False)
        if stars:
            behind = len(patterns) - stars[0] - 1
            middle = self.new("list", tuple(items[stars[0] : len(items) - behind]))
            items = [*items[: stars[0]], middle, *items[len(items) - behind :]]
        return self._items_match(patterns, items, bindings)

    def _rows_match(self, patterns: Sequence[Any], value: Value, bindings: dict[str, Value]) -> Host | Lane:
        """Tell whether a list whose length differs by lane matches the pattern of a sequence."""
        star = next((place for place, each in enumerate(patterns) if isinstance(each, gast.MatchStar)), None)
        count, length = len(patterns) - (star is not None), self.length(value)
        fits = self.truth(self.compare(gast.Eq if star is None else gast.GtE, length, Host(count)))
        with self.kept([value]) as row:
            for place in range(len(patterns)):
                behind = len(patterns) - place
                if place == star:
                    last = Host(1 - behind) if behind > 1 else NONE
                    row.append(self.call_value(self.attribute(row[0], "part"), [Host(place), last, NONE], {}))
                elif star is not None and place > star:
                    at = self.binary(gast.Sub, self.length(row[0]), Host(behind))
                    row.append(self.lazy_item(row[0], self.call_value(Host(max), [at, Host(0)], {})))
                else:
                    row.append(self.lazy_item(row[0], Host(place)))
            return self.both(fits, self._items_match(patterns, [*row][1:], bindings))

    def _items_match(self, patterns: Sequence[Any], items: Sequence[Value], bindings: dict[str, Value]) -> Host | Lane:
        found: Host | Lane = Host(True)
        for each, item in zip(patterns, items, strict=True):
            if isinstance(each, gast.MatchStar):
                if each.name is not None:
                    bindings[each.name] = item
                continue
            found = self.both(found, self.matches(each, item, bindings))
        return found

    def _entries_match(
        self, keys: Sequence[Any], patterns: Sequence[Any], rest: str | None, value: Value, bindings: dict[str, Value]
    ) -> Host | Lane:
        if not self.is_dict(value):
            return Host(False)
        entries = self.entries(value)
        found: Host | Lane = Host(True)
        for node, pattern in zip(keys, patterns, strict=True):
            key = self.constant(self.expression(node), "a key of a pattern")
            if key not in entries:
                return Host(False)
            found = self.both(found, self.matches(pattern, entries.pop(key), bindings))
        if rest is not None:
            bindings[rest] = self.new("dict", entries)
        return found

    def _class_matches(
        self,
        cls: Any,
        patterns: Sequence[Any],
        names: Sequence[str],
        named: Sequence[Any],
        value: Value,
        bindings: dict[str, Value],
    ) -> Host | Lane:
        wanted = self.constant(self.expression(cls), "a class")
        found = self.truth(self.call_isinstance(value, Host(wanted)))
        if isinstance(found, Host) and not found.value:
            return found
        fields = getattr(wanted, "__match_args__", ())
        if wanted in (int, float, bool) and patterns:
            return self.both(found, self.matches(patterns[0], value, bindings))
        for name, each in [*zip(fields, patterns, strict=False), *zip(names, named, strict=True)]:
            found = self.both(found, self.matches(each, self.attribute(value, name), bindings))
        return found

    def either_way(self, ends: Ends, arms: Sequence[Callable[[], None]]) -> None:
        """Interpret what follows where a test holds, and where not, and go on where both meet."""
        left: list[End] = []
        for own, arm in zip((ends.true, ends.false), arms, strict=True):
            self.join(own)
            if self.is_live:
                arm()
            left += self._here()
        self.join(left)

    # -- `return` -----------------------------------------------------------------------------------------------------

    def tail(self, node: Any) -> None:
        before, self.node = self.node, node
        try:
            match node:
                case gast.IfExp():
                    self._chosen_tail(node)
                case gast.BoolOp(op=op, values=[first, *rest]):
                    found = self.expression(first)
                    if self.is_live:
                        self._lazy_tail(isinstance(op, gast.And), found, rest)
                case _:
                    value = self.expression(node)
                    if self.is_live:
                        self.returned(value)
        finally:
            self.node = before

    def _chosen_tail(self, node: Any) -> None:
        """`return a if c else b`: two returns, where what is given takes blocks."""
        chosen = self.condition(node.test)
        if not self.is_live:
            return
        if isinstance(chosen, Host):
            self.tail(node.body if chosen.value else node.orelse)
            return
        body, orelse = (partial(self.expression, each) for each in (node.body, node.orelse))
        found = self.choose_straightly(chosen, body, orelse)
        if found is not None:
            self.returned(found)
            return
        self.fork(chosen, [partial(self.tail, node.body), partial(self.tail, node.orelse)])

    def _lazy_tail(self, is_and: bool, found: Value, rest: Sequence[Any]) -> None:
        """`return found and ..`: what decides is given."""
        if not rest:
            self.returned(found)
            return
        so_far = self.truth(found)
        if isinstance(so_far, Host):
            if so_far.value != is_and:
                self.returned(found)
            elif len(rest) == 1:
                self.tail(rest[0])
            else:
                self._lazy_tail(is_and, self.expression(rest[0]), rest[1:])
            return
        other = self.chained(is_and, found, so_far, rest[0])
        if other is not None:
            self._lazy_tail(is_and, other, rest[1:])
            return

        def onward() -> None:
            if len(rest) == 1:
                self.tail(rest[0])
                return
            value = self.expression(rest[0])
            if self.is_live:
                self._lazy_tail(is_and, value, rest[1:])

        arms: list[Callable[[], None]] = [onward, lambda: self.returned(found)]
        self.fork(so_far, arms if is_and else arms[::-1])
