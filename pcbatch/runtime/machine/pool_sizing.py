"""The numbers of lanes and the stack sizes of runs whose calls are forked: few, as each size is compiled anew.

A run begins with some lanes for each example, and goes on with more where these are too few, up to a limit of bytes;
the next run begins with what the last one could have used (`learned`). Lanes that nobody needs cost next to nothing,
as blocks run for lists of lanes: so a room (`rooms`) may be larger than the number of examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.batch_buckets import BatchBuckets, bucket
from pcbatch.runtime.machine.fork_feedback import ForkFeedback, ForkStatistics
from pcbatch.runtime.machine.forking import Report
from pcbatch.runtime.machine.limits import GROWTH
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import Layout

MOST_GROWTH = 8
"""Maximal factor by which a run's number of lanes grows when it grows first; and from run to run."""


@dataclass(frozen=True)
class Size:
    """A pool, and how many live calls the stacks of its lanes have room for."""

    pool: Pool
    capacity: int


class Pools:
    """The sizes of the runs of one program.

    What is `learned` says how many lanes there are for each example at first, or more, of `least` bytes in all; `limit`
    how many bytes they may take. A lane for each example there is in any case. With `most` there are never more lanes,
    however many examples: not all of these are run at once then.
    """

    def __init__(
        self,
        layout: Layout,
        largest_capacity: int,
        learned: ForkFeedback,
        *,
        limit: int,
        most: int | None,
        least: int = 0,
    ):
        self.layout, self.largest_capacity, self.learned = layout, largest_capacity, learned
        self.limit, self.most, self.least = limit, most, least
        self.rooms = BatchBuckets(lambda: min(CPU.idle_least, self.at_once(CPU.idle_least)))
        self._bytes: dict[int, int] = {}

    @property
    def spread(self) -> int:
        """The initial number of lanes of a run for each example."""
        return self.learned.now.spread

    @property
    def capacity(self) -> int:
        """The initial capacity of a run's stacks, in live calls."""
        return min(self.learned.now.capacity, self.largest_capacity)

    def at_once(self, examples: int) -> int:
        """Return the number of examples, out of so many, that run at once."""
        return examples if self.most is None else min(examples, max(1, self.most // self.spread))

    def of(self, examples: int) -> Size:
        """The size in which a run of so many examples begins."""
        return self._size(self.rooms.of(examples))

    def to_be(self, examples: int) -> Size:
        """The size in which a run of so many examples would begin, which is not made by this."""
        return self._size(self.rooms.to_be(examples))

    def exactly(self, examples: int) -> Size:
        """The size of a run in slices, which have no rooms."""
        return self._size(examples)

    def _size(self, room: int) -> Size:
        now = self.learned.now
        capacity = min(now.capacity, self.largest_capacity)
        fewest = min(self.least // self.bytes(capacity), CPU.least_lanes)
        fewest = 2 ** (fewest.bit_length() - 1) if fewest else 0
        lanes = min(max(room * now.spread, fewest), self._lanes(capacity))
        room = room if self.most is None else min(room, self.most)
        return Size(Pool(max(room, lanes), room), capacity)

    def larger(self, size: Size, growth: int, *, lanes: bool, stacks: bool) -> Size:
        """The next size, of `growth` times as many lanes, or of longer stacks; the same where there is none."""
        capacity, pool = size.capacity, size.pool
        longer = min(capacity * GROWTH, self.largest_capacity)
        if stacks and pool.lanes <= max(pool.examples, self._lanes(longer)):
            capacity = longer
        if lanes:
            pool = Pool(max(pool.lanes, min(pool.lanes * growth, self._lanes(capacity))), pool.examples)
        return Size(pool, capacity)

    def after(self, now: ForkStatistics, first: Size, last: Size, report: Report, examples: int) -> ForkStatistics:
        """Return the lesson of a run, which began with one size and ended with another: the size that it needed.

        One that was short of lanes would have needed one for each call at most; where that is hardly more than it had,
        the next one has as many. Where there are to be few lanes many runs are short; fewer examples are run at once if
        some could not end.
        """
        pool, spread, room = first.pool, now.spread, first.pool.examples
        wanted = -(-(examples + report.forked) // examples)
        enough = CPU.enough_lanes if last.pool.lanes == pool.lanes else 1.0
        if self.most is not None:
            spread = min(2 * spread if report.stuck else spread, self.most)
        elif report.short and wanted * room > enough * pool.lanes >= enough * room * spread:
            spread = min(bucket(wanted), max(spread * MOST_GROWTH, last.pool.lanes // room))
        return replace(now, spread=spread, capacity=max(now.capacity, last.capacity), is_known=True)

    def _lanes(self, capacity: int) -> int:
        """Return the maximal number of lanes."""
        lanes = self.limit // self.bytes(capacity)
        return lanes if self.most is None else min(lanes, self.most)

    def bytes(self, capacity: int) -> int:
        """The bytes of a lane whose stacks have room for so many live calls."""
        if capacity not in self._bytes:
            lists = 4 * (len(self.layout.program.blocks) + 3)
            self._bytes[capacity] = lists + sum(
                (capacity + 1 if held.stacked else 1) * math.prod(held.type.shape) * _element(held.type.dtype)
                for held in self.layout.arrays.values()
            )
        return self._bytes[capacity]


def _element(dtype: str) -> int:
    """The bytes of an element."""
    bits = "".join(filter(str.isdigit, dtype))
    return int(bits) // 8 if bits else 1
