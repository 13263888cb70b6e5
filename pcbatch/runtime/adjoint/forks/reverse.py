"""Reverse mode of a program that forks: runs of all examples, and of those that forks have given up once more.

Examples of which a lane has failed, or has taken too many steps, and those whose lanes find no room where the limit of
bytes is reached, run again in sequence, taped, as without a tape (`machine.forked`). What that gives counts for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pcbatch.ir.machine import LaneStatus
from pcbatch.runtime.adjoint.forks.vjp import ForkedWay
from pcbatch.runtime.adjoint.vjp import TapedRun
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.forked import ForkSummary, completed_by, left_over, noted
from pcbatch.runtime.machine.forking import Report
from pcbatch.runtime.machine.pool import BatchBuckets, Pool
from pcbatch.runtime.machine.pool_sizing import ForkStatistics, Pools, Size

LEAST = 64
"""The tape of a block has a multiple of so many rows."""
FIRST = 10
"""Rows of a tape for each example, before any run has reported them; and the factor of growth after one:"""
SLACK = 1.125
CHUNK = max(CPU.cheap_chunk, CPU.expensive_chunk_of_ends, CPU.expensive_chunk)
"""Number of additional rows, as a chunk begins only where a whole one has room."""
TRIES = 2
"""Number of attempts at a run that turns out to need more than it began with: the second one has enough."""


@dataclass(frozen=True, kw_only=True)
class ForkedTaped(TapedRun):
    """A taped run whose calls were forked: `first`, and `again` that of the examples at `left`, if there are any."""

    first: TapedRun
    left: np.ndarray
    again: TapedRun | None


class ForkedReverse:
    """Gives gradients through runs of a program that forks.

    `make(rows, are_likely)` makes the way for tapes of so many rows, which other runs say are likely to be enough, or
    not; `sequence` runs some examples in sequence, taped. How many lanes runs begin with is found out by runs before
    them: `pools`. `by_lane`: gradients by shared operands are those of each lane.
    """

    def __init__(
        self,
        backend: Backend,
        pools: Pools,
        rooms: BatchBuckets | None,
        make: Callable[[int, bool], ForkedWay],
        sequence: Callable[[Sequence[Array], Any], TapedRun],
        *,
        by_lane: bool,
    ):
        self.backend, self.pools, self.rooms, self.by_lane = backend, pools, rooms, by_lane
        self._make, self._sequence = make, sequence
        self._ways: dict[tuple[int, bool], ForkedWay] = {}

    def way(self, examples: int) -> ForkedWay:
        """The way for so many examples, idle ones included.

        Every lane runs most blocks once, and recursions have two kinds of calls at least, those that end them and the
        others. So where runs, plain ones too, have said how many lanes they need, tapes have half as many rows: else
        the first run of many has several segments, and the second one's programs are compiled anew.

        What is compiled serves on where it is only known by now that it is enough: to know it saves less than it takes
        to compile.
        """
        now = self.pools.learned.now
        share = max(FIRST if now.rows is None else now.rows, now.spread / 2)
        rows = -(-int(examples * share + CHUNK) // LEAST) * LEAST
        key = rows, now.is_known and (rows, False) not in self._ways
        if key not in self._ways:
            self._ways.setdefault(key, self._make(*key))
        return self._ways[key]

    def run(self, arrays: Sequence[Array], lanes: int) -> TapedRun:
        """Run so many examples on such arrays, taped, from ordinary code."""
        backend, room = self.backend, lanes if self.rooms is None else self.rooms.of(lanes)
        for others in reversed(range(TRIES)):
            way, size = self.way(room), self.pools.exactly(room)
            first = way.run_taped(arrays, lanes, room)
            left = left_over(first.outcome)
            told, is_new = self._learn(way, size, first, lanes, int(left.size))
            if not is_new or (self.way(room) is way and self.pools.exactly(room) == size):
                break
            if others:
                del first  # its tapes, before there are others
        outcome, again = first.outcome, None
        if left.size:
            count, places = len(way.layout.inputs), backend.array(left, "int32")
            some = [*(backend.load(array, [], places) for array in arrays[:count]), *arrays[count:]]
            again = self._sequence(some, int(left.size))
            outcome = completed_by(outcome, left, again.outcome)
        known = {**vars(first), "way": self, "outcome": noted(outcome, told)}
        return ForkedTaped(**known, first=first, left=left, again=again)

    def _learn(self, way: ForkedWay, size: Size, taped: TapedRun, examples: int, left: int) -> tuple[ForkSummary, bool]:
        """Report how a run has ended that began with a size, and left so many.

        Return its statistics, and whether they are news.
        """
        forked, most, short = np.asarray(taped.told[0]).tolist()
        lanes, capacity = int(np.asarray(taped.lanes)), int(taped.outcome.stack_entries) - 1
        report = Report(forked, most, short, 0, left if short else 0, 0)
        last = Size(Pool(lanes, size.pool.examples), capacity)
        rows = max((int(np.asarray(taped.outcome.active)[n]) for n in way.tapes.blocks), default=0)
        rows, wanted = (min(each, way.tapes.useful) for each in (rows, rows + CHUNK))

        def after(now: ForkStatistics) -> ForkStatistics:
            then = self.pools.after(now, size, last, report, examples)
            # What has another number of lanes is compiled anew in any case.
            more = then.spread > now.spread or (int(taped.segments) > 1 and wanted > way.rows)
            return replace(then, rows=max(now.rows or 0.0, SLACK * rows / examples)) if more else then

        is_new = self.pools.learned.learn(after)
        return ForkSummary(report, tuple(dict.fromkeys((size.pool.lanes, lanes))), examples, left), is_new

    def gradients(
        self, taped: TapedRun, shared: Sequence[Array], upstream: Sequence[Array | None], lanes: Any
    ) -> list[Array | None]:
        """See `Way.gradients`."""
        assert isinstance(taped, ForkedTaped)
        first, again, backend = taped.first, taped.again, self.backend
        found = first.way.gradients(first, shared, upstream, lanes)
        if again is None or np.all(np.asarray(again.outcome.status) != LaneStatus.OK):
            return found
        places = backend.array(taped.left, "int32")
        some = [None if each is None else backend.load(each, [], places) for each in upstream]
        more = again.way.gradients(again, shared, some, int(taped.left.size))
        count, by_lane = len(found) - len(shared), self.by_lane
        total: list[Array | None] = []
        for place, (one, other) in enumerate(zip(found, more, strict=True)):
            if one is None or other is None:
                total.append(one)
            elif place < count or by_lane:
                total.append(backend.masked_store(one, [], places >= 0, other, places))
            else:
                total.append(backend.sum_of_gradients(one, other))
        return total
