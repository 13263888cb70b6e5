"""A pool of lanes: an example runs in a lane.

How many lanes there are, and which examples they hold, is a matter of the pool alone. Inputs, results, status and steps
lie by example, so whatever a pool does with its lanes, an example gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.runtime.costs.device import CPU, Device
from pcbatch.runtime.costs.estimate import Prices

# -- pool --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pool:
    """`lanes` lanes, and arrays for `examples` examples: ints, or int32 scalars where they are known only when it runs.

    The state says which example a lane holds. It need not say so in a pool that is `whole`: lane i holds example i, as
    many lanes as examples, none of them yet to start. Then what lies by lane lies by example too, and nothing has to be
    moved or kept. There may be fewer examples than that (`BatchBuckets`): the last lanes are free then, throughout.
    In any other pool examples wait in a queue (`admission.take_next`), which also says how many there are: there may be
    fewer than the arrays have room for, so that what is compiled for a pool serves many numbers of examples.
    """

    lanes: Any
    examples: Any
    whole: bool = False

    @classmethod
    def of(cls, examples: Any, lanes: int | None = None) -> Pool:
        """The pool in which a run of so many examples begins; a lane for each of them unless `lanes` says how many."""
        if lanes is None or (isinstance(examples, int) and examples in (0, lanes)):
            return cls(examples, examples, whole=True)
        return cls(lanes, examples)

    @classmethod
    def at_most(cls, most: int, examples: Any) -> Pool:
        """A pool of `most` lanes at most, for so many examples: one of a few, for many numbers of them.

        Few examples get a part of the lanes, of which there are a quarter, a sixteenth, .. of `most`; the arrays of
        many have `most` times a power of two elements. A number of examples that is not known has a pool of its own.
        """
        if not isinstance(examples, int):
            return cls(most, examples)
        if not examples:
            return cls.of(examples)
        lanes = most
        while examples <= -(-lanes // STEP) < lanes:
            lanes = -(-lanes // STEP)
        room = lanes
        while room < examples:
            room *= 2
        return cls(lanes, room)

    @property
    def static(self) -> Pool:
        """The statically known part of the pool, None standing for an unknown number: a key."""

        def known(number: Any) -> int | None:
            return number if isinstance(number, int) else None

        return replace(self, lanes=known(self.lanes), examples=known(self.examples))


STEP = 4
"""Step in size of pools for few examples. Each size is compiled anew, so few of them."""


# -- batch buckets -----------------------------------------------------------------------------------------------------
# The numbers of lanes for which programs are compiled: few, for calls of many numbers of examples.
#
# A program that is compiled for a *room* of lanes serves every number of examples up to that: how many there are is a
# value, and the lanes beyond them are idle from the start. They hold the last example's inputs, so that what is
# computed for them, as for any junk lane, is nothing that no example could give; they are never run, nor counted, nor
# seen.
#
# The first number of examples has a program of its own, as most programs are only ever called for one. Another number
# goes to a room that there is, or to a new one of a power of two lanes or half as many again.


class BatchBuckets:
    """The rooms of one program; `spare()` says how many lanes may be idle at next to no cost."""

    def __init__(self, spare: Callable[[], int], device: Device = CPU):
        self._spare, self._device = spare, device
        self._known: dict[int, int] = {}

    def of(self, examples: int) -> int:
        """The room in which so many examples run: from the first time on always the same."""
        room = self._known.get(examples)
        if room is None:
            room = self._known.setdefault(examples, self._chosen(examples))
        return room

    def to_be(self, examples: int) -> int:
        """The room in which so many examples would run now, which is not made by this."""
        return self._known.get(examples) or self._chosen(examples)

    @property
    def made(self) -> tuple[int, ...]:
        """The rooms that there are, in the order of their sizes."""
        return tuple(sorted({*self._known.values()}))

    def _chosen(self, examples: int) -> int:
        made = [room for room in self.made if room]
        if not made or not examples:
            return examples
        least = bucket(self._spare())
        most = max(least, self._device.room_share * examples)
        fits = [room for room in made if examples <= room <= most]
        return min(fits, default=max(least, bucket(examples)))


def bucket(lanes: int) -> int:
    """The next power of two, or half as much again, that is not less."""
    size = 1
    while size < lanes:
        size *= 2
    return size // 4 * 3 if size >= 4 and size // 4 * 3 >= lanes else size


def spare_lanes(row_costs: Sequence[float], elements: int, device: Device = CPU) -> int:
    """Return the number of a program's lanes that may idle at next to no cost, if all blocks run in each trip.

    `elements` are the numbers that are kept of a lane, its inputs and outputs included.
    """
    prices = Prices(row_costs, 0, device)
    fixed = prices.trip + sum(prices.executions)
    lane = sum(row_costs) + elements
    spare = device.idle_most
    while spare > device.idle_least and spare * lane > device.idle_share * fixed:
        spare //= 2
    return spare if spare * elements <= device.idle_elements else 1
