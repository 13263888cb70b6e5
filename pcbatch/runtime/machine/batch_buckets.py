"""The numbers of lanes for which programs are compiled: few, for calls of many numbers of examples.

A program that is compiled for a *room* of lanes serves every number of examples up to that: how many there are is a
value, and the lanes beyond them are idle from the start. They hold the last example's inputs, so that what is computed
for them, as for any junk lane, is nothing that no example could give; they are never run, nor counted, nor seen.

The first number of examples has a program of its own, as most programs are only ever called for one. Another number
goes to a room that there is, or to a new one of a power of two lanes or half as many again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pcbatch.runtime.costs.device import CPU, Device
from pcbatch.runtime.costs.prices import Prices


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
