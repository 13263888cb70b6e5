"""Reverse mode of a program that forks: runs of all examples, and of those that forks have given up once more.

Examples of which a lane has failed, or has taken too many steps, and those whose lanes find no room where the limit of
bytes is reached, run again in sequence, taped, as without a tape (`machine.forked`). What that gives counts for them.

The forward and backward pass are those of `vjp`, with the parts that know of other lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pcbatch.ir.machine import Chunks, LaneStatus, Program
from pcbatch.runtime.adjoint.backward_sweep import Replay
from pcbatch.runtime.adjoint.forked_segments import TOLD, FlatLegs, ForkedSegments, ForkedTapes
from pcbatch.runtime.adjoint.forward import Forward
from pcbatch.runtime.adjoint.vjp import TapedProgram, TapedRun
from pcbatch.runtime.backends.protocol import Array, Backend, Spec
from pcbatch.runtime.costs.device import CPU
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.forked import ForkSummary, completed_by, left_over, noted
from pcbatch.runtime.machine.forking import Forking, Report
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.machine.pool import BatchBuckets, Pool
from pcbatch.runtime.machine.pool_sizing import ForkStatistics, Pools, Size
from pcbatch.runtime.machine.segments import Snapshot

# -- passes ------------------------------------------------------------------------------------------------------------


class ForkedForward(Forward):
    """The forward pass, taped, of one program that forks."""

    tells = 2

    segments: ForkedSegments

    def begin(self, arrays: Sequence[Array], lanes: int | None, fixed: int | None) -> tuple[Snapshot, Sequence[Array]]:
        """See `Forward`; the program is given on how many lanes the run begins, too."""
        *given, width, capacity, every = arrays
        inputs = dict(zip(self.layout.inputs, given, strict=False))
        return self.segments.begin(inputs, Pool(width, lanes), capacity, every), self.operands(arrays)

    def pool(self, arrays: Sequence[Array], lanes: int | None) -> Pool:
        """See `Forward`."""
        return Pool(None, lanes)

    def operands(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """See `Forward`."""
        inputs = dict(zip(self.layout.inputs, arrays, strict=False))
        return [*(inputs[key] for key in self.layout.by_example), *arrays[len(self.layout.inputs) : -3]]

    def told(self, last: Snapshot) -> list[Array]:
        """Return the statistics of forked calls, and the final number of lanes."""
        return [last.state[TOLD], self.backend.constant(0) + self.segments.lanes(last)]

    @cached_property
    def operand_specs(self) -> list[Spec]:
        """See `Forward`."""
        return self.segments.legs.operand_specs


class ForkedWay(TapedProgram):
    """Runs one program that forks taped; `pools` has the numbers of lanes.

    Tapes have room for so many `rows` of a block, which `are_likely` to be enough, if other runs have said so.
    """

    has_width = True

    def __init__(self, program: Program, context: Context, *, pools: Pools, rows: int, are_likely: bool, **given: Any):
        super().__init__(program, context, capacity=pools.capacity, **given)
        self.pools, self.rows, self._are_likely = pools, rows, are_likely

    @cached_property
    def _legs(self) -> FlatLegs:
        return FlatLegs(self.context)

    @cached_property
    def tapes(self) -> ForkedTapes:
        """See `TapedProgram`."""
        return ForkedTapes(self.context, self.rows, self._trips.size, self._sizes, self._sources, self._are_likely)

    @cached_property
    def segments(self) -> ForkedSegments:
        """See `TapedProgram`."""
        return ForkedSegments(self.context, self.tapes, self._legs, self.pools.limit)

    @cached_property
    def forward(self) -> ForkedForward:
        """See `TapedProgram`."""
        return ForkedForward(self.segments, self.put_aside, self.name_of, jit=self.jit, statistics=self.statistics)

    def _distinctions(self) -> tuple[Any, ...]:
        """See `TapedProgram`."""
        return *super()._distinctions(), self.rows, self._are_likely, self.pools.limit

    @cached_property
    def replay(self) -> Replay:
        """See `TapedProgram`."""
        order = self._trips.routes.order
        return Replay(self.tapes, self.chunked, by_lane=self.by_lane, order=order)

    @cached_property
    def _trips(self) -> Forking:
        """Trips of any pool."""
        return Forking(self.context, self._legs.loop.row_costs, Pool(1, 1))

    def chunked(self, lanes: Any) -> Program:
        """The program with the chunks in which its blocks run, whatever the number of lanes."""
        blocks = enumerate(self.program.blocks)
        chunked = (replace(block, chunks=Chunks(self._trips.size(number))) for number, block in blocks)
        return replace(self.program, blocks=tuple(chunked))

    def _first_size(self, lanes: Any, room: int | None) -> list[Array]:
        """See `TapedProgram`: the number of lanes, and the capacity of stacks."""
        assert room is not None, "runs whose length is not known make their calls in sequence"
        size = self.pools.exactly(room)
        return [self._count(size.pool.lanes), self._count(size.capacity)]

    def _note_capacity(self, capacity: int, outcome: Outcome) -> None:
        """See `TapedProgram`: `pools` knows it."""

    def _completed(self, taped: TapedRun, arrays: Sequence[Array]) -> TapedRun:
        """See `TapedProgram`."""
        inputs = dict(zip(self.layout.inputs, arrays, strict=False))
        told, lanes = taped.told
        return replace(taped, operands=[inputs[key] for key in self.layout.by_example], lanes=lanes, told=[told])

    def _pool(self, examples: Any) -> Pool:
        """See `TapedProgram`."""
        return Pool(None, examples)


# -- reverse mode ------------------------------------------------------------------------------------------------------


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
