"""The ways of lanes from block to block, and the order in which a trip goes through the blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pcbatch.ir.analysis.callgraph import components
from pcbatch.ir.analysis.effects import successors
from pcbatch.ir.machine import Program


@dataclass(frozen=True)
class BlockGraph:
    """The control flow of a program of `len(successors)` blocks.

    `successors[b]` are the places to which block `b` can send lanes, those beyond the blocks being ends; at the blocks
    of `sync` lanes wait for each other, some of which are `deferred`. `order` has the blocks in the order of a trip
    (see `optimize.machine.block_order`); those where lanes wait for each other come first, for it is at the start of a
    trip that they may go on.
    """

    successors: Sequence[Sequence[int]]
    sync: Collection[int] = ()
    order: Sequence[int] = ()
    merged: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The blocks that are run as one, by the first of them, which alone is in `order`."""
    deferred: Collection[int] = ()

    def __post_init__(self) -> None:
        if not self.order:
            numbers = range(len(self.successors))
            object.__setattr__(self, "order", sorted(numbers, key=lambda number: number not in self.sync))

    @classmethod
    def of(cls, program: Program) -> BlockGraph:
        """The ways of lanes in `program`."""
        deferred = [number for number, block in enumerate(program.blocks) if block.deferred is not None]
        sync = [number for number, block in enumerate(program.blocks) if block.sync or block.deferred is not None]
        return cls(successors(program), sync, list(program.order), deferred=deferred)

    @cached_property
    def meetings(self) -> list[int]:
        """The blocks at which lanes wait for each other since the user says so."""
        return [number for number in self.sync if number not in self.deferred]

    def with_merged(self, merged: Sequence[Sequence[int]]) -> BlockGraph:
        """The same with blocks that are run as one."""
        if not merged:
            return self
        others = {number for members in merged for number in members[1:]}
        order = [number for number in self.order if number not in others]
        return replace(self, order=order, merged={members[0]: members for members in merged})

    def members(self, number: int) -> Sequence[int]:
        """The blocks that run where block `number` of `order` is run."""
        return self.merged.get(number, (number,))

    @cached_property
    def onward(self) -> list[list[int]]:
        """The blocks to which each can send lanes and at which they do not wait for others.

        Of one that others are run with the blocks to which any of them can.
        """
        blocks = [number for number in range(len(self.successors)) if number not in self.sync]
        every = (
            dict.fromkeys(place for member in self.members(number) for place in self.successors[member])
            for number in range(len(self.successors))
        )
        return [[place for place in places if place in blocks] for places in every]

    @cached_property
    def before(self) -> list[list[int]]:
        """The blocks, for each block, from which lanes can come to it, and to which none can go from it.

        They are in components of the flow that are earlier than its own.
        """
        return [[other for other in self._beyond if number in self._beyond[other]] for number in self._beyond]

    def gathering(self, expensive: Collection[int]) -> dict[frozenset[int], list[int]]:
        """The expensive blocks that lie one behind the other, each with the blocks whose lanes it waits for.

        A block waits for lanes that can come to another one before, from which they cannot come back to that: a loop
        behind a loop. Not for those at the entry, if that is no loop: from there all lanes go at once.
        """
        found: dict[frozenset[int], list[int]] = {}
        for number in expensive:
            earlier = [other for other in expensive if other in self.before[number] and (other or self._returns)]
            leading = (other for each in earlier for other in (each, *self._coming[each]))
            places = frozenset(other for other in leading if other in self.before[number])
            if earlier:
                found.setdefault(places, []).append(number)
        return found

    @cached_property
    def _returns(self) -> bool:
        """Return whether lanes can come back to the entry."""
        return any(0 in places for places in self.successors)

    @cached_property
    def _coming(self) -> list[set[int]]:
        """The blocks, for each block, from which lanes can come to it."""
        found: list[set[int]] = [set() for _ in self.successors]
        changes = True
        while changes:
            changes = False
            for number, places in enumerate(self.successors):
                for place in (each for each in places if each < len(found)):
                    more = {number, *found[number]} - found[place]
                    found[place] |= more
                    changes = changes or bool(more)
        return found

    @cached_property
    def _beyond(self) -> dict[int, set[int]]:
        """The blocks, for each block, to which lanes can go from it, and from which none can come back."""
        edges = {
            number: [place for place in places if place < len(self.successors)]
            for number, places in enumerate(self.successors)
        }
        beyond: dict[int, set[int]] = {}
        within: dict[int, set[int]] = {}
        for members in map(set, components(edges)):  # what lies behind comes first
            found: set[int] = set()
            for place in {place for number in members for place in edges[number]} - members:
                found |= within[place] | beyond[place]
            within.update(dict.fromkeys(members, members))
            beyond.update(dict.fromkeys(members, found))
        return {number: beyond[number] for number in edges}

    @cached_property
    def ahead(self) -> list[list[int]]:
        """The blocks of `onward` that come later in `order`."""
        places = {member: place for place, number in enumerate(self.order) for member in self.members(number)}
        return [
            [each for each in onward if places.get(each, -1) > places.get(number, len(places))]
            for number, onward in enumerate(self.onward)
        ]
