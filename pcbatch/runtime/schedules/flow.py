"""Where lanes go from block to block, and the order in which a trip is to go through the blocks.

A lane that is sent to a block further down in the order goes on in the same trip; one that is sent up waits for the
next. So that order is best in which the arrows that lead up weigh least: a smallest feedback arc set, which is searched
for by moving one block at a time. The source's order is not bad, but a recursion returns to where it called, which is
further up (the sampler, 64 chains: 7.3 trips for each gradient in the source's order, 5.3 in this one).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

STARTS = 4
"""How many orders, each depth first from a block, are improved by moves; the best of them is taken."""
WHOLE = 2520
"""The weight of a block's arrows together; divided by up to ten without a remainder."""


@dataclass(frozen=True)
class Flow:
    """The control flow of a program of `len(successors)` blocks.

    `successors[b]` are the places to which block `b` can send lanes, those beyond the blocks being ends; at the blocks
    of `sync` lanes wait for each other.
    """

    successors: Sequence[Sequence[int]]
    sync: Collection[int] = ()

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
        orders = [self._from(start) for start in self._reached if start not in self.sync]
        best = sorted(orders, key=self._weight_up)[:STARTS]
        return first + min(map(self._improved, best), key=self._weight_up, default=[])

    @cached_property
    def _within(self) -> list[list[int]]:
        """The blocks to which each can send lanes."""
        return [[place for place in places if place < len(self.successors)] for places in self.successors]

    @cached_property
    def _reached(self) -> list[int]:
        """The blocks that a lane can come to."""
        found: set[int] = set()
        waiting = [0]
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self._within[number]
        return sorted(found)

    @cached_property
    def _weights(self) -> dict[tuple[int, int], int]:
        """The weights of the arrows by where they come from and lead to: a lane goes each way equally often."""
        return {
            (source, place): WHOLE // len(self._within[source])
            for source in self._reached
            for place in self.onward[source]
            if place != source
        }

    def _from(self, start: int) -> list[int]:
        """What can be reached from block `start`, depth first in reverse postorder, behind what cannot."""
        found: list[int] = []
        seen = {start}
        path = [(start, iter(self.onward[start]))]
        while path:
            number, places = path[-1]
            place = next((each for each in places if each not in seen), None)
            if place is None:
                found.append(number)
                path.pop()
            else:
                seen.add(place)
                path.append((place, iter(self.onward[place])))
        return [*(n for n in self._reached if n not in seen and n not in self.sync), *reversed(found)]

    def _weight_up(self, order: Sequence[int]) -> int:
        """The weight of the arrows that lead up."""
        places = {number: place for place, number in enumerate(order)}
        return sum(
            weight
            for (source, target), weight in self._weights.items()
            if source in places and places[target] < places[source]
        )

    def _improved(self, order: list[int]) -> list[int]:
        """`order` with blocks moved, one at a time, to the nearest place where they have least weight on arrows up."""
        while (better := self._moved(order)) != order:
            order = better
        return order

    def _moved(self, order: list[int]) -> list[int]:
        for number in tuple(order):
            here = order.index(number)
            rest = order[:here] + order[here + 1 :]
            weights = self._weights_up(number, rest)
            best = min(weights)
            if best < weights[here]:
                place = min((p for p, weight in enumerate(weights) if weight == best), key=lambda p: abs(p - here))
                order = [*rest[:place], number, *rest[place:]]
        return order

    def _weights_up(self, number: int, rest: Sequence[int]) -> list[int]:
        """For each place of block `number` among `rest` the weight of its arrows that lead up."""
        weights = [sum(self._weights.get((other, number), 0) for other in rest)]
        for other in rest:
            passed = self._weights.get((number, other), 0) - self._weights.get((other, number), 0)
            weights.append(weights[-1] + passed)
        return weights
