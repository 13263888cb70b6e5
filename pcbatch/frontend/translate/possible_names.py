"""Which names may be one object if calls of which nobody knows anything give back what they take: names alone.

A coarse analysis, beside that of `aliasing`, which knows parts: its facts are a row of bits for each name, those of the
names that may share an object with it. Only what such a call adds to its answer counts.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pcbatch.frontend.translate.changed_objects import changed_by, changed_name, takings
from pcbatch.frontend.translate.references import NO_HINTS, Hints, KindOf, has_unknown_call, repeats
from pcbatch.ir.analysis.dataflow import Analysis, solve
from pcbatch.ir.program import Block, Coded, Function, Op, Store, reads, statement, writes

Rows = tuple[int, ...]
Spot = tuple[str, int]
"""The label of a block and the number of an op in it."""
Clash = tuple[Spot, int]
"""A store, and the names, as bits, that may then hold its array and are read later or belong to another scope."""


class PossibleNames:
    """Asks one function. `live` has what is live after each op, by block.

    `calls_users` says whether an op calls a method of which nobody knows what it keeps of its arguments; `hints_at`, of
    which methods it is known, or will be asked, whether they are arrays'.
    """

    def __init__(
        self,
        function: Function,
        kind_of: KindOf,
        live: Mapping[str, tuple[frozenset[str], ...]],
        calls_users: Callable[[Op], object],
        hints_at: Callable[[Op], Hints],
    ):
        self.function, self.live = function, live
        self.places = {(block.label, at): op for block in function.blocks for at, op in enumerate(block.ops)}
        every = (name for op in self.places.values() for name in (*_names_read(op), *writes(op)))
        self.bit = {name: 1 << at for at, name in enumerate(dict.fromkeys((*function.parameters, *every)))}
        written = {name for op in self.places.values() for name in writes(op)}
        self.free = self._bits(name for name in self.bit if name not in written and name not in function.parameters)
        self.stores = [spot for spot, op in self.places.items() if changed_name(op) is not None]
        self.read = {spot: self._bits(_names_read(op)) for spot, op in self.places.items()}
        self.rebound = {
            spot: 0 if isinstance(op, Store) else self._bits(writes(op)) for spot, op in self.places.items()
        }
        objects = any(changed_by(op) is not None for op in self.places.values())
        self.unknown = [
            spot
            for spot, op in self.places.items()
            if isinstance(op, Coded) and op.outputs and (has_unknown_call(statement(op), kind_of) or calls_users(op))
        ]
        self.products = [
            spot for spot, op in self.places.items() if objects and isinstance(op, Coded) and repeats(statement(op))
        ]

        def sources(op: Op) -> int:
            hints = replace(NO_HINTS, variables=hints_at(op).variables, arrays=hints_at(op).arrays)
            taken = takings(statement(op), kind_of, objects=objects, hints=hints) if isinstance(op, Coded) else ()
            return self._bits(source for _, (_, (source, _)) in taken if source in self.bit)

        self.sources = {spot: sources(op) for spot, op in self.places.items()}
        for spot in self.unknown:  # what a method of the user's keeps is not known by the name that a list's has, too
            change = changed_by(self.places[spot])
            if change is not None:
                self.sources[spot] = self._bits((change.place[0],))

    def calls_to_check(self) -> list[Spot]:
        """The ops with calls that must give something new for the stores of the function to be right."""
        if not self.stores or not self.unknown:
            return []
        known = self._clashes(frozenset())
        if self._clashes(frozenset(self.unknown)) == known:
            return []
        found = [spot for spot in self.unknown if self._clashes(frozenset((spot,))) != known]
        return found or self.unknown

    def calls_with_parts(self) -> list[Spot]:
        """The ops with calls, or products, of whose values a part of a part changes: no object may be there twice."""
        changes = [change for op in self.places.values() if (change := changed_by(op)) is not None]
        roots = {change.place[0] for change in changes if change.place[1] and not change.is_put_back}
        wanted = self._bits(name for name in roots if name in self.bit)
        while True:
            sources = (self.sources[spot] for spot, written in self.rebound.items() if written & wanted)
            more = functools.reduce(operator.or_, sources, wanted)
            if more == wanted:
                return [spot for spot in (*self.unknown, *self.products) if self.rebound[spot] & wanted]
            wanted = more

    def related(self, spot: Spot) -> frozenset[str]:
        """The names that may hold what op `spot` assigns, if its calls give back what they take."""
        label, wanted = spot
        for at, rows in self._before_each_op(label, self._solved(frozenset((spot,))), frozenset((spot,))):
            if at == wanted:
                after = self._through(spot, rows, True)
                return self._names(self._union(after, self._bits(writes(self.places[spot]))))
        raise KeyError(spot)

    def _clashes(self, loose: frozenset[Spot]) -> frozenset[Clash]:
        start = self._solved(loose)
        found = set()
        for block in self.function.blocks:
            for at, rows in self._before_each_op(block.label, start, loose):
                op = block.ops[at]
                name = changed_name(op)
                if name is not None:
                    own = self.bit[name]
                    read = self._bits(name for name in self.live[block.label][at] if name in self.bit) | self.free
                    found.add(((block.label, at), self._union(rows, own) & read & ~own))
        return frozenset(found)

    # -- the effect of ops ---------------------------------------------------------------------------------------------

    def _solved(self, loose: frozenset[Spot]) -> dict[str, Rows]:
        nothing: Rows = (0,) * len(self.bit)

        def merge(one: Rows, other: Rows) -> Rows:
            return tuple(a | b for a, b in zip(one, other, strict=True))

        def through(block: Block, rows: Rows) -> Rows:
            for at in range(len(block.ops)):
                rows = self._through((block.label, at), rows, (block.label, at) in loose)
            return rows

        facts = solve(self.function.blocks, Analysis("forward", {}, nothing, merge, through))
        return {label: each.start for label, each in facts.items()}

    def _before_each_op(
        self, label: str, start: Mapping[str, Rows], loose: frozenset[Spot]
    ) -> Iterator[tuple[int, Rows]]:
        rows = start[label]
        at = 0
        while (label, at) in self.places:
            yield at, rows
            rows = self._through((label, at), rows, (label, at) in loose)
            at += 1

    def _through(self, spot: Spot, rows: Rows, loose: bool) -> Rows:
        rebound = self.rebound[spot]
        if not rebound:
            return rows
        taken = self.read[spot] if loose else self.sources[spot]
        shared = ((taken | self._union(rows, taken)) & ~rebound) | (rebound if taken else 0)
        if not taken and not self._union(rows, rebound) and not any(row & rebound for row in rows):
            return rows
        return tuple(
            shared & ~bit if bit & rebound else row & ~rebound | (rebound if bit & shared else 0)
            for row, bit in zip(rows, self.bit.values(), strict=True)
        )

    # -- bits ----------------------------------------------------------------------------------------------------------

    def _bits(self, names: Iterator[str] | tuple[str, ...]) -> int:
        found = 0
        for name in names:
            found |= self.bit[name]
        return found

    def _union(self, rows: Rows, bits: int) -> int:
        """What the names among `bits` may share an object with."""
        found = 0
        while bits:
            lowest = bits & -bits
            found |= rows[lowest.bit_length() - 1]
            bits ^= lowest
        return found

    def _names(self, bits: int) -> frozenset[str]:
        return frozenset(name for name, bit in self.bit.items() if bit & bits)


def _names_read(op: Op) -> tuple[str, ...]:
    return statement(op).reads if isinstance(op, Coded) else reads(op)
