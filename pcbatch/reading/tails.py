"""Tail calls: a function's last call is one, also where it stands in an arm or behind `or`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gast

from pcbatch.reading.matching import Matching
from pcbatch.reading.values import Host, Value


class Tails(Matching):
    """`return`."""

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
