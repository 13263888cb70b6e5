"""Lists of lanes: where the lanes of a program that forks are, so that nothing has to look at all of them to find some.

There is a list for each block, of the lanes that wait there; one of lanes that have run a forked call (HANDED), one of
free lanes, and one of lanes that lack room on their stacks. A lane is in one list at most: one that waits for the calls
that it has forked is in none, nor is one that has ended. What is put on a list last is taken first: so forks go down
before they go on beside, and no more lanes are held than that takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pcbatch.runtime.backends.protocol import Array, Backend, State

LISTS, LENGTHS = "lists", "lengths"
"""The keys of all lists, one behind the other, int32 `[lists * lanes]`, and of their lengths, int32 `[lists]`."""


@dataclass(frozen=True)
class Worklists:
    """The lists of a program of so many `blocks` in a pool of `lanes`: a number, or an int32 scalar."""

    backend: Backend
    blocks: int
    lanes: Any

    @property
    def handed(self) -> int:
        """The list of lanes that have run a forked call, to its end or not."""
        return self.blocks

    @property
    def free(self) -> int:
        """The list of free lanes."""
        return self.blocks + 1

    @property
    def paused(self) -> int:
        """The list of lanes that lack room."""
        return self.blocks + 2

    @property
    def count(self) -> int:
        """The number of lists."""
        return self.blocks + 3

    @property
    def nowhere(self) -> int:
        """The list of lanes that go on no list."""
        return self.count

    def first(self, examples: Array | int) -> State:
        """The lists when a run begins: lane i waits at block 0 for example i, the others are free."""
        backend, lanes = self.backend, self.lanes
        numbers, begin = backend.lane_numbers(lanes), backend.constant(0) + examples
        nobody = backend.lane_numbers(self.count * lanes) * 0
        free = backend.where(numbers < lanes - begin, lanes - 1 - numbers, numbers * 0)
        lists = backend.with_rows(nobody, backend.constant(0), numbers)
        lists = backend.with_rows(lists, backend.constant(0) + self.free * lanes, free)
        nothing = backend.constant(0)
        lengths = {0: begin, self.free: lanes - begin}
        return {LISTS: lists, LENGTHS: backend.stack([lengths.get(n, nothing) for n in range(self.count)])}

    def length(self, now: State, number: int) -> Array:
        """Return the number of lanes on a list: a scalar."""
        return now[LENGTHS][number]

    def last(self, now: State, number: int, count: Array, places: Array) -> Array:
        """Return the lanes at `places` among the last `count` of a list, the last first; beyond, the last of these."""
        backend = self.backend
        places = backend.where(places < count, places, count - 1)
        places = self.length(now, number) - 1 - places
        return backend.take(now[LISTS], number * self.lanes + backend.where(places < 0, places * 0, places))

    def changed(self, now: State, by: dict[int, Array]) -> State:
        """Change the lengths of lists by these numbers."""
        backend, nobody = self.backend, self.backend.constant(0)
        change = backend.stack([by.get(number, nobody) for number in range(self.count)])
        return {**now, LENGTHS: now[LENGTHS] + change}

    def put(self, now: State, number: int, lanes: Array, mask: Array, ranks: Array, count: Array) -> State:
        """Put `count` lanes, those of `mask`, on a list, in the order of their `ranks`."""
        places = number * self.lanes + self.length(now, number) + ranks
        lists = self.backend.masked_store(now[LISTS], [], mask, lanes, places)
        return self.changed({**now, LISTS: lists}, {number: count})

    def spread(self, now: State, lanes: Array, numbers: Array) -> State:
        """Put lanes on the lists of these numbers, maybe `nowhere`."""
        backend = self.backend
        goes = numbers < self.nowhere
        known = backend.where(goes, numbers, numbers * 0)
        places = known * self.lanes + backend.take(now[LENGTHS], known) + backend.ranks(numbers)
        lists = backend.masked_store(now[LISTS], [], goes, lanes, places)
        return {**now, LISTS: lists, LENGTHS: now[LENGTHS] + backend.tally(numbers, range(self.count))}
