"""The order in which a trip is to go through the blocks.

A lane that is sent to a block further down in the order goes on in the same trip; one that is sent up waits for the
next. So that order is best in which the arrows that lead up weigh least: a smallest feedback arc set, which is searched
for by moving one block at a time. The source's order is not bad, but a recursion returns to where it called, which is
further up (the sampler, 64 chains: 7.3 trips for each gradient in the source's order, 5.3 in this one).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pcbatch.ir.analysis.effects import calls_from, successors
from pcbatch.ir.analysis.parallel_call_groups import groups
from pcbatch.ir.machine import Program, Return

STARTS = 4
"""The number of orders, the source's and depth first ones, that are improved by moves; the best is taken."""
WHOLE = 2520
"""The weight of a block's arrows together; divided by up to ten without a remainder."""


def order_blocks(program: Program) -> Program:
    """Say in which order a trip goes through the blocks that lanes can come to."""
    sync = [number for number, block in enumerate(program.blocks) if block.sync]
    return replace(program, order=tuple(Ordering(successors(program), sync, _between_trips(program)).order))


def _between_trips(program: Program) -> set[tuple[int, int]]:
    """The arrows along which lanes go between trips: where calls are forked, and where these return."""
    found = set()
    for group in groups(program):
        for member in group.members:
            first = member.block if member.call.condition is None else group.block
            found.add((first, member.entry))
            for number in calls_from(program, (member.entry,)):
                if isinstance(program.blocks[number].terminator, Return):
                    found |= {(number, each.back) for each in group.members}
    return found


@dataclass(frozen=True)
class Ordering:
    """The search for an order. `successors[b]` are the places to which block `b` can send lanes, ends among them.

    At the blocks of `sync` lanes wait for each other. Arrows of `between` are gone along between trips.
    """

    successors: Sequence[Sequence[int]]
    sync: Collection[int] = ()
    between: Collection[tuple[int, int]] = ()

    @cached_property
    def onward(self) -> list[list[int]]:
        """The blocks to which each can send lanes and at which they do not wait for others."""
        return [[place for place in places if place not in self.sync] for places in self._within]

    @cached_property
    def order(self) -> list[int]:
        """The blocks that lanes can come to, in an order for a trip.

        Blocks where lanes wait for each other come first, for it is at the start of a trip that they may go on.
        """
        first = [number for number in self._reached if number in self.sync]
        rest = [number for number in self._reached if number not in self.sync]
        orders = [rest, *map(self._from, rest)]
        best = sorted(orders, key=self._weight_up)[:STARTS]
        return first + min(map(self._improved, best), key=self._weight_up)

    @cached_property
    def _within(self) -> list[list[int]]:
        """The blocks to which each can send lanes."""
        return [[place for place in places if place < len(self.successors)] for places in self.successors]

    @cached_property
    def _reached(self) -> list[int]:
        """The blocks that a lane can come to."""
        return sorted({0, *self._reachable(0)})

    def _reachable(self, start: int) -> set[int]:
        """The blocks that a lane can come to when it has left block `start`."""
        found: set[int] = set()
        waiting = [*self._within[start]]
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self._within[number]
        return found

    @cached_property
    def _weights(self) -> dict[tuple[int, int], int]:
        """The weights of the arrows by where they come from and lead to.

        A lane is taken to go equally often each way on which it can come back. Those on which it cannot need not lead
        up in any order.
        """
        reachable = {number: self._reachable(number) for number in self._reached}
        found = {}
        for source in self._reached:
            places = (place for place in self._within[source] if (source, place) not in self.between)
            returning = [place for place in places if source in reachable[place]]
            for place in returning:
                if place in self.onward[source] and place != source:
                    found[source, place] = WHOLE // len(returning)
        return found

    @cached_property
    def _going(self) -> defaultdict[int, dict[int, int]]:
        """The weights of the arrows from each block, by where they lead to."""
        found: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for (source, place), weight in self._weights.items():
            found[source][place] = weight
        return found

    @cached_property
    def _coming(self) -> defaultdict[int, dict[int, int]]:
        """The weights of the arrows to each block, by where they come from."""
        found: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for (source, place), weight in self._weights.items():
            found[place][source] = weight
        return found

    def _from(self, start: int) -> list[int]:
        """The blocks reached from `start`, depth first in reverse postorder, behind those that are not."""
        found: list[int] = []
        seen = {start}
        path = [(start, reversed(self.onward[start]))]
        while path:
            number, places = path[-1]
            place = next((each for each in places if each not in seen), None)
            if place is None:
                found.append(number)
                path.pop()
            else:
                seen.add(place)
                path.append((place, reversed(self.onward[place])))
        return [*(n for n in self._reached if n not in seen and n not in self.sync), *reversed(found)]

    def _up(self, order: Sequence[int]) -> dict[tuple[int, int], int]:
        """The arrows that lead up, and their weights."""
        places = {number: place for place, number in enumerate(order)}
        return {
            arrow: weight
            for arrow, weight in self._weights.items()
            if arrow[0] in places and places[arrow[1]] < places[arrow[0]]
        }

    def _weight_up(self, order: Sequence[int]) -> int:
        return sum(self._up(order).values())

    def _improved(self, order: list[int]) -> list[int]:
        """`order` with blocks moved, one at a time, to the nearest place where they have least weight on arrows up."""
        while (better := self._moved(order)) != order:
            order = better
        return order

    def _moved(self, order: list[int]) -> list[int]:
        for number in sorted({end for arrow in self._up(order) for end in arrow}, key=order.index):
            here = order.index(number)
            rest = order[:here] + order[here + 1 :]
            weights = self._weights_up(number, rest)
            best = min(weights)
            if best < weights[here]:
                place = min((p for p, weight in enumerate(weights) if weight == best), key=lambda p: abs(p - here))
                order = [*rest[:place], number, *rest[place:]]
        return order

    def _weights_up(self, number: int, rest: Sequence[int]) -> list[int]:
        """The weight of the arrows that lead up, for each place of block `number` among `rest`."""
        coming, going = self._coming[number], self._going[number]
        weights = [sum(weight for other, weight in coming.items() if other in rest)]
        for other in rest:
            weights.append(weights[-1] + going.get(other, 0) - coming.get(other, 0))
        return weights
