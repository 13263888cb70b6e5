"""Reverse mode of one program: the choice of a run's way through it, and of the compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pcbatch.ir.analysis.parallel_call_groups import forking, groups, without_forks
from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.once import once
from pcbatch.optimize.machine.compaction import DEFAULT, Compaction
from pcbatch.optimize.machine.merging import Merging
from pcbatch.runtime.adjoint.captured_operands import with_hidden
from pcbatch.runtime.adjoint.external_block_tapes import ExternalBlockTapes
from pcbatch.runtime.adjoint.forks.reverse import ForkedReverse
from pcbatch.runtime.adjoint.forks.vjp import ForkedWay
from pcbatch.runtime.adjoint.natively import MakeNative, Natively
from pcbatch.runtime.adjoint.tangent import tangent_program
from pcbatch.runtime.adjoint.tape import Sizes, Sources
from pcbatch.runtime.adjoint.text import print_adjoint
from pcbatch.runtime.adjoint.vjp import TapedProgram, TapedRun
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.outcome import Statistics
from pcbatch.runtime.machine.pool import BatchBuckets
from pcbatch.runtime.machine.pool_sizing import ForkFeedback, Pools
from pcbatch.runtime.machine.state import GROWTH, Layout, Limits
from pcbatch.runtime.schedules import schedule_named

FEW = 3
"""Number of segments beyond which the next run has tapes as long as they get."""


@dataclass(frozen=True)
class Forks:
    """The feedback `learned` from runs whose calls are forked, plain ones too, and the limit on the bytes of lanes.

    Few examples begin with so many bytes of lanes at `least`, as plain runs do: else their first run would be compiled
    for several numbers of lanes.
    """

    learned: ForkFeedback
    limit: int
    least: int = 0


class Reverse(TapedProgram):
    """Runs one program taped, in lockstep, and gives gradients. Compiled once for each room of lanes.

    `tape` says what is put aside of each segment: a name of `POLICIES`. With `mixing` runs from ordinary code may have
    other code between blocks that are taped, if it pays; `lockstep` are the blocks that are left to the machine then.
    `most`, if that is given, is how many rows of a block a run may have inside a caller's compiled program; `is_fixed`:
    it is for such a one (`static_size.py`). With `forks` runs from ordinary code fork the groups of calls of `program`.
    Stacks have room for `capacity` calls at first, if that is known. Gradients of runs from ordinary code are given
    `natively`, if that can be.
    """

    def __init__(
        self,
        program: Program,
        backend: Backend,
        *,
        schedule: str = "auto",
        jit: bool = True,
        max_depth: int | None = None,
        max_steps: int | None = None,
        statistics: Statistics | None = None,
        sizes: Sizes | None = None,
        sources: Sources | None = None,
        by_lane: bool = False,
        compaction: Compaction | None = DEFAULT,
        merging: Merging | None = None,
        tape: str = "keep",
        mixing: ExternalBlockTapes | None = None,
        lockstep: frozenset[int] | None = None,
        rooms: BatchBuckets | None = None,
        forks: Forks | None = None,
        most: int | None = None,
        is_fixed: bool = False,
        capacity: int | None = None,
        natively: MakeNative | None = None,
        digest: Callable[[], str | None] = lambda: None,
    ):
        given: dict[str, Any] = {"schedule": schedule, "jit": jit, "max_depth": max_depth, "max_steps": max_steps}
        given |= {
            "compaction": compaction,
            "merging": merging,
            "tape": tape,
            "statistics": statistics,
            "mixing": mixing,
            "rooms": rooms,
        }
        given |= {"most": most, "forks": forks, "natively": natively, "digest": digest}
        self._anew = partial(Reverse, program, backend, **given, sizes=sizes)
        self._bounds = max_depth, max_steps
        self._larger: Reverse | None = None
        self._by_sources: dict[tuple[Sources, bool], Reverse] = {}
        self.most, self._natively = most, natively
        program, self.hidden = with_hidden(program, backend)
        """The values that helpers capture, which follow all other shared operands."""
        self.mixing, self._rooms, self._forks = mixing, rooms, forks
        every = groups(program) if forks is not None else []
        self._forked_program = forking(program) if every else None
        program = without_forks(program)
        is_mixed = mixing is not None and lockstep is not None
        program = mixing.prepared(program) if mixing is not None and is_mixed else program
        layout, limits = Layout(program), Limits.of(max_depth, max_steps)
        if not layout.all_stacks or is_fixed:
            limits = replace(limits, roomy=True)
        context = Context(backend, layout, limits, not jit, schedule_named(schedule), compaction, merging)
        if mixing is not None and lockstep is not None:
            context = replace(context, elsewhere=mixing.elsewhere(layout, backend, limits, lockstep))
        super().__init__(
            program,
            context,
            jit=jit,
            tape=tape,
            statistics=Statistics() if statistics is None else statistics,
            sizes=sizes,
            sources=sources,
            by_lane=by_lane,
            capacity=limits.first_capacity if capacity is None else capacity,
            is_fixed=is_fixed,
            is_mixed=is_mixed,
            digest=digest,
        )

    def by(self, sources: Sources, *, by_lane: bool = False) -> Reverse:
        """Reverse mode that gives gradients by these parameters and shared operands alone, and keeps less.

        `by_lane`: by shared operands those of each lane, `[lanes, ...]`.
        """
        key = sources, by_lane
        if key not in self._by_sources:
            self._by_sources[key] = self._anew(sources=sources, by_lane=by_lane)
        return self._by_sources[key]

    @once
    def fixed(self) -> Reverse:
        """The same inside a caller's compiled program: tapes with room for so many rows, and for as many runs."""
        assert self.most is not None
        log = self.most * len(self.program.blocks)
        sizes = Sizes(guesses=False, batches=1, rows=self.most, bytes=2**62, log=log)
        return self._anew(sizes=sizes, sources=self._sources, is_fixed=True)

    @once
    def mixed(self) -> Reverse | None:
        """The same of runs with native code between the blocks that are taped; None where that does not pay."""
        if self.mixing is None or self.is_mixed:
            return None
        lockstep = self.mixing.lockstep(self.program, self.backend, self.tapes.blocks)
        if lockstep is None:
            return None
        return self._anew(sources=self._sources, by_lane=self.by_lane, lockstep=lockstep, capacity=self.capacity)

    @once
    def forked(self) -> ForkedReverse | None:
        """The same of runs whose calls are forked; None where none are."""
        program, forks = self._forked_program, self._forks
        if program is None or forks is None or self.is_fixed or self.is_mixed:
            return None
        layout = Layout(program)
        limits = replace(self.limits, roomy=False)
        context = replace(self.context, layout=layout, limits=limits)
        pools = Pools(layout, limits.largest_capacity, forks.learned, limit=forks.limit, least=forks.least)
        given = {"jit": self.jit, "tape": self.tape, "statistics": self.statistics, "sizes": self._sizes}
        given |= {"sources": self._sources, "by_lane": self.by_lane, "digest": self._plain_digest}

        def make(rows: int, are_likely: bool) -> ForkedWay:
            return ForkedWay(program, context, pools=pools, rows=rows, are_likely=are_likely, **given)

        return ForkedReverse(self.backend, pools, self._rooms, make, self._in_sequence, by_lane=self.by_lane)

    @once
    def by_lanes(self) -> Reverse:
        """The same, whose gradients by shared operands are those of each lane."""
        return self._anew(sources=self._sources, by_lane=True)

    @once
    def tangent(self) -> Reverse:
        """Reverse mode of the tangent program, in lockstep: second derivatives are its first ones."""
        return Reverse(
            tangent_program(self.program, self.backend),
            self.backend,
            schedule=self.context.schedule.name,
            jit=self.jit,
            max_depth=self._bounds[0],
            max_steps=self._bounds[1],
            statistics=self.statistics,
            compaction=self.context.compaction,
            tape=self.tape,
            rooms=self._rooms,
        )

    @once
    def native(self) -> Natively | None:
        """The gradients by native code; None where there are none."""
        return None if self._natively is None or self.is_fixed or self.is_mixed else self._natively(self)

    def is_native(self, lanes: Any) -> bool:
        """True if gradients of a run of so many lanes are given natively, so that it need not be recorded."""
        return isinstance(lanes, int) and lanes > 0 and self.backend.runs_now() and self.native is not None

    def pulled_back(
        self, taped: TapedRun | None, arrays: Sequence[Array], upstream: Sequence[Array | None], lanes: Any
    ) -> list[Array | None]:
        """See `gradients`: of a run on `arrays` that is `taped`; None: of one that is made again."""
        if taped is None and self.is_native(lanes):
            assert self.native is not None
            found = self.native.gradients(arrays, upstream, lanes)
            if found is not None:
                return found
        return self.gradients(taped or self.run(arrays, lanes), arrays[len(self.layout.inputs) :], upstream, lanes)

    def text(self, lanes: Any) -> str:
        """The way back as text."""
        is_known = isinstance(lanes, int) and self.backend.runs_now()
        if is_known and self.forked is not None:
            return print_adjoint(self.forked.way(lanes).replay, lanes)
        way = self.mixed if is_known else None
        return print_adjoint((way or self).replay, lanes)

    # -- forward -------------------------------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Array], lanes: Any) -> TapedRun:
        """Run `lanes` lanes on such arrays, taped."""
        return self._in_sequence(arrays, lanes) if self.forked is None else self.forked.run(arrays, lanes)

    def _in_sequence(self, arrays: Sequence[Array], lanes: Any) -> TapedRun:
        """The same, with calls made one after the other."""
        if self._larger is not None:
            return self._larger.run(arrays, lanes)
        if not (isinstance(lanes, int) and self.backend.runs_now()):
            return self.run_taped(arrays, lanes, _known(lanes))
        room, way = lanes if self._rooms is None else self._rooms.of(lanes), self.mixed or self
        taped = way.run_mixed(arrays, lanes, room) if way.is_mixed else self.run_taped(arrays, lanes, room)
        if self.tapes.are_short(room) and int(taped.segments) > FEW:
            sizes = replace(self.tapes.sizes, guesses=False)
            self._larger = self._anew(sources=self._sources, by_lane=self.by_lane, sizes=sizes, capacity=way.capacity)
        return taped

    def run_mixed(self, arrays: Sequence[Array], lanes: int, room: int) -> TapedRun:
        """The same; where a lane lacks room on its stacks, once more on larger ones, on which the next run begins."""
        largest, first = self.limits.largest_capacity, self.capacity
        while True:
            taped = self.run_taped(arrays, lanes, room, self.capacity)
            status = np.asarray(taped.outcome.status)
            if self.capacity >= largest or not np.any(status == LaneStatus.UNFINISHED):
                break
            self.capacity = min(self.capacity * GROWTH, largest)
        if self.capacity > first and np.any(status == LaneStatus.MAX_DEPTH):
            self.capacity = first  # maybe of a recursion without end, for which no other run is to pay
        return taped


def _known(lanes: Any) -> int | None:
    return lanes if isinstance(lanes, int) else None
