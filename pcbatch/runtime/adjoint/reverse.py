"""Reverse mode of one program: what a run is taped for, as data, and the compiled program for each such plan.

Native code takes part by two interfaces: for gradients without records, and between the taped blocks of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pcbatch.ir.analysis.parallel_call_groups import forking, groups, without_forks
from pcbatch.ir.machine import LaneStatus, Piece, Program
from pcbatch.optimize.machine.compaction import DEFAULT, Compaction
from pcbatch.runtime.adjoint.forked_reverse import ForkedReverse, ForkedWay
from pcbatch.runtime.adjoint.tangent import tangent_program
from pcbatch.runtime.adjoint.tape import Sizes, Sources
from pcbatch.runtime.adjoint.text import print_adjoint
from pcbatch.runtime.adjoint.vjp import TapedProgram, TapedRun
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.machine.context import Context, ExternalBlocks
from pcbatch.runtime.machine.outcome import Statistics
from pcbatch.runtime.machine.pool import BatchBuckets
from pcbatch.runtime.machine.pool_sizing import ForkFeedback, Pools
from pcbatch.runtime.machine.state import GROWTH, Layout, Limits
from pcbatch.runtime.schedules import schedule_named
from pcbatch.threads import once

# -- interfaces to native code -----------------------------------------------------------------------------------------


class Natively(Protocol):
    """Gives the gradients of runs of one program, from ordinary code."""

    def gradients(
        self, arrays: Sequence[Array], upstream: Sequence[Array | None], lanes: int
    ) -> list[Array | None] | None:
        """See `TapedProgram.gradients`; `arrays` are arguments and shared operands. None if a record gets too long."""


MakeNative = Callable[[TapedProgram], Natively | None]
"""Makes the giver of gradients of a way's program by native code; None where there is none."""


class ExternalBlockTapes(Protocol):
    """Runs blocks that are not taped."""

    def lockstep(self, program: Program, backend: Backend, taped: Collection[int]) -> frozenset[int] | None:
        """The blocks that are left to the machine, those that are `taped` among them; None where it does not pay."""

    def prepared(self, program: Program) -> Program:
        """The program as it needs it."""

    def elsewhere(self, layout: Layout, backend: Backend, limits: Limits, lockstep: frozenset[int]) -> ExternalBlocks:
        """Return the runner of all blocks but those in `lockstep`, of which there are some."""


# -- captured operands -------------------------------------------------------------------------------------------------
# The values that helpers capture on their own: variables of a layer, arrays from around a plain function.
# A run takes them as they are, but for the way back they must be shared operands like any other: their gradients are
# wanted, and their values are those of the run, whatever is assigned later.


def with_hidden(program: Program, backend: Backend) -> tuple[Program, tuple[Any, ...]]:
    """Return the program with captures of its pieces' helpers as shared operands behind all others, and these."""
    found: dict[int, tuple[str, Any]] = {}

    def shown(piece: Piece) -> Piece:
        shared = [program.shared_types[name] for name in piece.shared]
        captured = backend.facts(piece, [program.types[name] for name in piece.reads], shared).captured
        for each in captured:
            found.setdefault(id(each), (f"captured {len(found)}", each))
        pairs = {id(each): found[id(each)] for each in captured}.values()
        return replace(
            piece,
            shared=(*piece.shared, *(name for name, _ in pairs)),
            kept={**piece.kept, **{name: (each,) for name, each in pairs}},
            unnamed=len(pairs),
        )

    def items(block: Any) -> Iterator[Any]:
        for item in block.body:
            yield shown(item) if isinstance(item, Piece) else item

    with backend.tracing_once():
        blocks = tuple(replace(block, body=tuple(items(block))) for block in program.blocks)
    if not found:
        return program, ()
    types = {name: backend.type_of(each) for name, each in found.values()}
    shared, shared_types = (*program.shared, *types), {**program.shared_types, **types}
    shown_all = replace(program, blocks=blocks, shared=shared, shared_types=shared_types)
    return shown_all, tuple(each for _, each in found.values())


# -- reverse mode ------------------------------------------------------------------------------------------------------


FEW = 3
"""Number of segments beyond which the next run has tapes as long as they get."""


@dataclass(frozen=True)
class Forks:
    """The feedback `learned` from runs whose calls are forked, plain ones too, and the limit on the bytes of lanes.

    Few examples begin with so many bytes of lanes at `least`, as plain runs do: else their first run would be compiled
    for several numbers of lanes. `in_sequence` is told of runs in a caller's graph, whose calls are not forked.
    """

    learned: ForkFeedback
    limit: int
    least: int = 0
    in_sequence: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Settings:
    """The rules of all taped runs of a program.

    `tape` says what is put aside of each segment: a name of `POLICIES`. `most`, if that is given, is how many rows of a
    block a run may have inside a caller's compiled program. Runs from ordinary code share programs by `rooms`, may have
    other code between blocks that are taped (`mixing`), fork the groups of calls (`forks`), and give gradients
    `Natively`, where that is so.
    """

    schedule: str = "auto"
    jit: bool = True
    max_depth: int | None = None
    max_steps: int | None = None
    compaction: Compaction | None = DEFAULT
    unguarded: bool = False
    tape: str = "keep"
    most: int | None = None
    rooms: BatchBuckets | None = None
    mixing: ExternalBlockTapes | None = None
    forks: Forks | None = None
    natively: MakeNative | None = None
    digest: Callable[[], str | None] = lambda: None
    """By which the cache on disk knows the program."""


@dataclass(frozen=True)
class Plan:
    """The gradients that a run is taped for, and how.

    By the parameters and shared operands of `sources`, None: by all; by shared operands `by_lane`, those of each lane.
    `is_fixed`: inside a caller's compiled program (`custom_gradient`). `lockstep` are the blocks that are left to the
    machine where other code runs between those that are taped.
    """

    sources: Sources | None = None
    by_lane: bool = False
    sizes: Sizes | None = None
    is_fixed: bool = False
    lockstep: frozenset[int] | None = None


class Reverse(TapedProgram):
    """Runs one program taped, in lockstep, by a plan, and gives gradients. Compiled once for each room of lanes."""

    def __init__(
        self,
        program: Program,
        backend: Backend,
        settings: Settings,
        statistics: Statistics | None = None,
        plan: Plan | None = None,
        known: dict[Plan, Reverse] | None = None,
    ):
        self._original, self.settings, self.plan = program, settings, plan or Plan()
        self._larger: Reverse | None = None
        mixing, lockstep = settings.mixing, self.plan.lockstep
        program, self.hidden = with_hidden(program, backend)
        """The values that helpers capture, which follow all other shared operands."""
        every = groups(program) if settings.forks is not None else []
        self._forked_program = forking(program) if every else None
        program = without_forks(program)
        program = mixing.prepared(program) if mixing is not None and lockstep is not None else program
        layout, limits = Layout(program), Limits.of(settings.max_depth, settings.max_steps)
        if not layout.all_stacks or self.plan.is_fixed:
            limits = replace(limits, roomy=True)
        schedule = schedule_named(settings.schedule)
        context = Context(backend, layout, limits, not settings.jit, schedule, settings.compaction, settings.unguarded)
        if mixing is not None and lockstep is not None:
            context = replace(context, elsewhere=mixing.elsewhere(layout, backend, limits, lockstep))
        super().__init__(
            program,
            context,
            jit=settings.jit,
            tape=settings.tape,
            statistics=Statistics() if statistics is None else statistics,
            sizes=self.plan.sizes,
            sources=self.plan.sources,
            by_lane=self.plan.by_lane,
            capacity=limits.first_capacity,
            is_fixed=self.plan.is_fixed,
            is_mixed=lockstep is not None,
            digest=settings.digest,
        )
        self._known = {self.plan: self} if known is None else known

    def planned(self, **changes: Any) -> Reverse:
        """The same by another plan: one for each."""
        plan = replace(self.plan, **changes)
        if plan in self._known:
            return self._known[plan]
        made = Reverse(self._original, self.backend, self.settings, self.statistics, plan, self._known)
        return self._known.setdefault(plan, made)

    @property
    def fixed(self) -> Reverse:
        """The same inside a caller's compiled program: tapes with room for so many rows, and for as many runs."""
        rows = self.settings.most
        assert rows is not None
        sizes = Sizes(guesses=False, batches=1, rows=rows, bytes=2**62, log=rows * len(self.program.blocks))
        return self.planned(sizes=sizes, is_fixed=True)

    @once
    def mixed(self) -> Reverse | None:
        """The same of runs with native code between the blocks that are taped; None where that does not pay."""
        mixing = self.settings.mixing
        lockstep = None if mixing is None else mixing.lockstep(self.program, self.backend, self.tapes.blocks)
        return None if self.is_mixed or lockstep is None else self.planned(lockstep=lockstep)

    @once
    def forked(self) -> ForkedReverse | None:
        """The same of runs whose calls are forked; None where none are."""
        program, forks = self._forked_program, self.settings.forks
        if program is None or forks is None or self.is_fixed or self.is_mixed:
            return None
        layout = Layout(program)
        limits = replace(self.limits, roomy=False)
        context = replace(self.context, layout=layout, limits=limits)
        pools = Pools(layout, limits.largest_capacity, forks.learned, limit=forks.limit, least=forks.least)
        given = {"jit": self.jit, "tape": self.tape, "statistics": self.statistics, "sizes": self.plan.sizes}
        given |= {"sources": self.plan.sources, "by_lane": self.by_lane, "digest": self._plain_digest}

        def make(rows: int, are_likely: bool) -> ForkedWay:
            return ForkedWay(program, context, pools=pools, rows=rows, are_likely=are_likely, **given)

        return ForkedReverse(self.backend, pools, self.settings.rooms, make, self._in_sequence, by_lane=self.by_lane)

    @once
    def tangent(self) -> Reverse:
        """Reverse mode of the tangent program, in lockstep: second derivatives are its first ones."""
        plain = replace(self.settings, unguarded=False, most=None, mixing=None, forks=None, natively=None)
        return Reverse(tangent_program(self.program, self.backend), self.backend, plain, self.statistics)

    @once
    def native(self) -> Natively | None:
        """The gradients by native code; None where there are none."""
        make = self.settings.natively
        return None if make is None or self.is_fixed or self.is_mixed else make(self)

    def is_native(self, lanes: Any) -> bool:
        """True if gradients of a run of so many lanes are given natively, so that it need not be recorded."""
        return self._is_known(lanes) and lanes > 0 and self.native is not None

    def _is_known(self, lanes: Any) -> bool:
        """True of a run from ordinary code."""
        return isinstance(lanes, int) and self.backend.runs_now()

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
        if self._is_known(lanes) and self.forked is not None:
            return print_adjoint(self.forked.way(lanes).replay, lanes)
        way = self.mixed if self._is_known(lanes) else None
        return print_adjoint((way or self).replay, lanes)

    # -- forward -------------------------------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Array], lanes: Any) -> TapedRun:
        """Run `lanes` lanes on such arrays, taped."""
        if self.forked is None:
            return self._in_sequence(arrays, lanes)
        if self._is_known(lanes):
            return self.forked.run(arrays, lanes)
        assert self.settings.forks is not None
        self.settings.forks.in_sequence()
        return self._in_sequence(arrays, lanes)

    def _in_sequence(self, arrays: Sequence[Array], lanes: Any) -> TapedRun:
        """The same, with calls made one after the other."""
        if self._larger is not None:
            return self._larger._in_sequence(arrays, lanes)
        if not self._is_known(lanes):
            return self.run_taped(arrays, lanes, lanes if isinstance(lanes, int) else None)
        rooms = self.settings.rooms
        room, way = lanes if rooms is None else rooms.of(lanes), self.mixed or self
        taped = way.run_mixed(arrays, lanes, room) if way.is_mixed else self.run_taped(arrays, lanes, room)
        if self.tapes.are_short(room) and int(taped.segments) > FEW:
            self._larger = self.planned(sizes=replace(self.tapes.sizes, guesses=False))
            self._larger.capacity = way.capacity
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
