"""Reverse mode of one program: runs that are taped, and the way back through them.

Both are plain graphs around compiled segments: the way forward puts what each segment has recorded at the end of lists,
the way back takes it from there. So they run in a caller's graph as well, however many segments there will be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.optimize.machine.compaction import DEFAULT, Compaction
from pcbatch.runtime.adjoint.beginnings import Beginnings
from pcbatch.runtime.adjoint.borders import by_parameters, seeded
from pcbatch.runtime.adjoint.flow import Flow
from pcbatch.runtime.adjoint.forward import Forward
from pcbatch.runtime.adjoint.hidden import with_hidden
from pcbatch.runtime.adjoint.mixing import Mixing
from pcbatch.runtime.adjoint.put_aside import PutAside, Whole
from pcbatch.runtime.adjoint.refusing import refusing
from pcbatch.runtime.adjoint.replay import Replay
from pcbatch.runtime.adjoint.segments import Segments
from pcbatch.runtime.adjoint.tape import Sizes, Sources, Tapes
from pcbatch.runtime.adjoint.text import print_adjoint
from pcbatch.runtime.backends.protocol import Array, Backend, Spec
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.limits import GROWTH, Limits
from pcbatch.runtime.machine.outcome import Outcome, Statistics
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.rooms import Rooms
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.schedules import schedule_named

POLICIES: dict[str, Callable[[Segments], PutAside]] = {"keep": Whole, "replay": Beginnings}
"""What is put aside of segments, by the option `tape`."""
FEW = 3
"""More segments than these, and the next run has tapes as long as they get."""


@dataclass(frozen=True)
class Taped:
    """A taped run: what made it, what it gave, and what it left for the way back.

    `aside` is what has been put aside of so many `segments`; `pointers` are those at which the results lie. It had so
    many lanes, examples and idle ones: `room`.
    """

    way: Reverse
    outcome: Outcome
    aside: Sequence[Array]
    segments: Array
    pointers: Sequence[Array]
    room: Any


class Reverse:
    """Runs one program taped, in lockstep, and gives gradients. Compiled once for each room of lanes.

    `tape` says what is put aside of each segment: a name of `POLICIES`. With `mixing` runs from ordinary code may have
    other code between blocks that are taped, if it pays; `lockstep` are the blocks that are left to the machine then.
    `most`, if that is given, is how many rows of a block a run may have inside a caller's compiled program; `is_fixed`:
    it is for such a one (`fixed.py`). Stacks have room for `capacity` calls at first, if that is known.
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
        tape: str = "keep",
        mixing: Mixing | None = None,
        lockstep: frozenset[int] | None = None,
        rooms: Rooms | None = None,
        most: int | None = None,
        is_fixed: bool = False,
        capacity: int | None = None,
    ):
        given: dict[str, Any] = {"schedule": schedule, "jit": jit, "max_depth": max_depth, "max_steps": max_steps}
        given |= {"compaction": compaction, "tape": tape, "statistics": statistics, "mixing": mixing, "rooms": rooms}
        given["most"] = most
        self._anew = partial(Reverse, program, backend, **given, sizes=sizes)
        self._larger: Reverse | None = None
        self._by_sources: dict[tuple[Sources, bool], Reverse] = {}
        self.by_lane, self.most, self.is_fixed = by_lane, most, is_fixed
        program, self.hidden = with_hidden(program, backend)
        """What helpers capture, to be given behind all other shared operands."""
        self.is_mixed = mixing is not None and lockstep is not None
        self.program = program = mixing.prepared(program) if mixing is not None and self.is_mixed else program
        self.backend, self.jit, self.mixing = backend, jit, mixing
        layout, limits = Layout(program), Limits.of(max_depth, max_steps)
        if not layout.all_stacks or is_fixed:
            limits = replace(limits, roomy=True)
        self.layout, self.limits = layout, limits
        self.context = Context(backend, layout, limits, not jit, schedule_named(schedule), compaction)
        if mixing is not None and lockstep is not None:
            self.context = replace(self.context, elsewhere=mixing.elsewhere(layout, backend, limits, lockstep))
        self._sizes, self._sources, self._tape, self._rooms = sizes, sources, tape, rooms
        self.statistics = Statistics() if statistics is None else statistics
        self.capacity = limits.first_capacity if capacity is None else capacity
        self._made: dict[Any, Any] = {}

    @cached_property
    def tapes(self) -> Tapes:
        """What a run keeps; GradientError where there is no way back."""
        return Tapes(self.context, self._sizes, self._sources)

    def by(self, sources: Sources, *, by_lane: bool = False) -> Reverse:
        """Reverse mode that gives gradients by these parameters and shared operands alone, and keeps less.

        `by_lane`: by shared operands those of each lane, `[lanes, ...]`.
        """
        key = sources, by_lane
        if key not in self._by_sources:
            self._by_sources[key] = self._anew(sources=sources, by_lane=by_lane)
        return self._by_sources[key]

    @cached_property
    def fixed(self) -> Reverse:
        """The same inside a caller's compiled program: tapes with room for so many rows, and for as many runs."""
        assert self.most is not None
        log = self.most * len(self.program.blocks)
        sizes = Sizes(guesses=False, batches=1, rows=self.most, bytes=2**62, log=log)
        return self._anew(sizes=sizes, sources=self._sources, is_fixed=True)

    @cached_property
    def mixed(self) -> Reverse | None:
        """The same of runs with native code between the blocks that are taped; None where that does not pay."""
        if self.mixing is None or self.is_mixed:
            return None
        lockstep = self.mixing.lockstep(self.program, self.backend, self.tapes.blocks)
        if lockstep is None:
            return None
        return self._anew(sources=self._sources, by_lane=self.by_lane, lockstep=lockstep, capacity=self.capacity)

    @cached_property
    def segments(self) -> Segments:
        """The segments of a run."""
        return Segments(self.context, self.tapes)

    @cached_property
    def put_aside(self) -> PutAside:
        """What is put aside of them for the way back."""
        return POLICIES[self._tape](self.segments)

    @cached_property
    def forward(self) -> Forward:
        """Runs them."""
        return Forward(self.segments, self.put_aside, jit=self.jit, statistics=self.statistics)

    @cached_property
    def replay(self) -> Replay:
        """Undoes them."""
        return Replay(self.tapes, self.segments.legs.loop.chunked, by_lane=self.by_lane, sums=self.is_fixed)

    @cached_property
    def flow(self) -> Flow:
        """By what gradients flow."""
        return Flow(self.replay)

    def nothing(self) -> list[Array | None]:
        """The gradients of a batch of no lanes."""
        return self.flow.nothing()

    def text(self, lanes: Any) -> str:
        """The way back as text."""
        way = self.mixed if isinstance(lanes, int) and self.backend.runs_now() else None
        return print_adjoint((way or self).replay, lanes)

    # -- forward -------------------------------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Array], lanes: Any) -> Taped:
        """Run `lanes` lanes on such arrays, taped."""
        if self._larger is not None:
            return self._larger.run(arrays, lanes)
        if not (isinstance(lanes, int) and self.backend.runs_now()):
            return self._run(arrays, lanes, _known(lanes))
        room, way = lanes if self._rooms is None else self._rooms.of(lanes), self.mixed or self
        taped = way.run_mixed(arrays, lanes, room) if way.is_mixed else self._run(arrays, lanes, room)
        if self.tapes.are_short(room) and int(taped.segments) > FEW:
            sizes = replace(self.tapes.sizes, guesses=False)
            self._larger = self._anew(sources=self._sources, by_lane=self.by_lane, sizes=sizes, capacity=way.capacity)
        return taped

    def run_mixed(self, arrays: Sequence[Array], lanes: int, room: int) -> Taped:
        """The same; where a lane lacks room on its stacks, once more on larger ones, on which the next run begins."""
        largest, first = self.limits.largest_capacity, self.capacity
        while True:
            taped = self._run(arrays, lanes, room, self.capacity)
            status = np.asarray(taped.outcome.status)
            if self.capacity >= largest or not np.any(status == LaneStatus.UNFINISHED):
                break
            self.capacity = min(self.capacity * GROWTH, largest)
        if self.capacity > first and np.any(status == LaneStatus.MAX_DEPTH):
            self.capacity = first  # maybe of a recursion without end, for which no other run is to pay
        return taped

    def _run(self, arrays: Sequence[Array], lanes: Any, room: int | None, capacity: int | None = None) -> Taped:
        """A taped run in a room for so many lanes, None where that is not known.

        On stacks of some `capacity`, on which it may end before its time, if that is given.
        """
        forward = self._once(("forward", room, capacity), lambda: self.forward.run(room, capacity))
        given = [*self._extended(arrays, lanes, room), self.backend.constant(self.capacity), self._count(lanes)]
        with self.statistics.timed(), refusing(self.program, self.backend, self.jit):
            found = iter(list(self.backend.unseen(forward)(*given)))
        legs = self.segments.legs
        reached = next(found)
        counters, outputs = (
            {key: next(found) for key in keys} for keys in (legs.loop.counter_specs, self.layout.outputs)
        )
        pointers = [next(found) for _ in self.forward.pointers]
        segments = next(found)
        outcome = legs.outcome(counters, outputs, reached, None if room is None or room == lanes else lanes)
        outcome = replace(outcome, tape=self.tapes.bytes_by_span)
        if capacity is None and not legs.limits.roomy and self.backend.is_concrete(outcome.status):
            self._note_capacity(int(reached), outcome)
        return Taped(self, outcome, [*found], segments, pointers, room)

    def _count(self, lanes: Any) -> Array:
        return self.backend.constant(lanes) if isinstance(lanes, int) else lanes

    def _extended(self, arrays: Sequence[Array], lanes: Any, room: int | None) -> list[Array]:
        """`arrays`, of arguments and shared operands, those of lanes with room for more."""
        if room is None or room == lanes:
            return [*arrays]
        count = len(self.layout.inputs)
        return [*(self.backend.extended(array, room) for array in arrays[:count]), *arrays[count:]]

    def _note_capacity(self, capacity: int, outcome: Outcome) -> None:
        """Begin the next run on stacks as long as these, unless a recursion without end wanted them."""
        if capacity > self.capacity and not self.backend.any(outcome.status == LaneStatus.MAX_DEPTH):
            self.capacity = capacity

    # -- back ----------------------------------------------------------------------------------------------------------

    def gradients(
        self, taped: Taped, shared: Sequence[Array], upstream: Sequence[Array | None], lanes: Any
    ) -> list[Array | None]:
        """The gradients by the leaves of all arguments, then by those of all shared operands; None where none flows.

        `upstream` are those by the leaves of the results. Lanes that have failed give nothing and get nothing.
        """
        if taped.way is not self:
            return taped.way.gradients(taped, shared, upstream, lanes)
        wanted, room = tuple(each is not None for each in upstream), taped.room
        key = ("back", room, wanted, capacity := self._fixed(taped))
        back = self._once(key, lambda: self._back(room, wanted, capacity))
        by_lane = [taped.outcome.status, *(each for each in upstream if each is not None)]
        if room is not None and room != lanes:
            by_lane = [self.backend.extended(each, room) for each in by_lane]
        status, *seeds = by_lane
        given = [
            *(self._count(lanes), status, taped.outcome.stack_entries, taped.segments),
            *(*taped.pointers, *shared, *seeds, *taped.aside),
        ]
        with self.statistics.timed(), refusing(self.program, self.backend, self.jit):
            found = list(self.backend.unseen(back)(*given))
        if room is not None and room != lanes:
            count = self.flow.by_lane
            found = [*(self.backend.first(each, lanes) for each in found[:count]), *found[count:]]
        return self.flow.packed(iter(found))

    def _fixed(self, taped: Taped) -> int | None:
        """The capacity of stacks that a run was compiled for, if it is one alone."""
        return int(taped.outcome.stack_entries) - 1 if self.is_mixed and self.layout.all_stacks else None

    def _back(self, lanes: int | None, wanted: Sequence[bool], capacity: int | None) -> Callable[..., Any]:
        def program(*arrays: Array) -> list[Array]:
            remaining = iter(arrays)
            examples, status, entries, segments = (next(remaining) for _ in range(4))
            pointers = {name: next(remaining) for name in self.forward.pointers}
            shared = [next(remaining) for _ in self.forward.operand_specs]
            seeds = iter([next(remaining) if each else None for each in wanted])
            aside = [*remaining]
            every = self.backend.lanes_of(status)
            sound = (self.backend.array(status, "int32") == 0) & (self.backend.lane_numbers(every) < examples)
            gradients = seeded(self.replay, seeds, pointers, sound, every, entries)
            totals = {key: self.replay.nothing(type_, every) for key, type_ in self.replay.totals.items()}
            compiled, lookups = self.undo(lanes), self.replay.lookups
            carried = (*gradients, *totals)
            pool = Pool.of(lanes if lanes is not None else every)

            def run(flat: Sequence[Array]) -> Sequence[Array]:
                return list(self.forward.segment(pool, capacity)(*flat, *shared, examples))

            def undone(before: Any) -> Any:
                number, aside, arrays, rows = before
                aside, tape = self.put_aside.last(aside, number, pool, run)
                found = list(compiled(*arrays, *tape, sound, *shared))
                rows = lookups.with_more(rows, lookups.flat(found[len(carried) :]))
                return number - 1, aside, found[: len(carried)], rows

            start = (segments, aside, [*gradients.values(), *totals.values()], lookups.none())
            _, _, found, rows = self.backend.while_loop(lambda before: before[0] > 0, undone, start)
            after, looked_up = dict(zip(carried, found, strict=True)), lookups.joined(rows)
            return [*by_parameters(self.replay, after, every), *(after[key] for key in self.replay.totals), *looked_up]

        return self.backend.compile(program, False)

    def undo(self, lanes: int | None) -> Callable[..., Any]:
        """The program of a segment's way back: gradients and totals, before and after it, come first; then lookups."""
        tape_specs = self.tapes.specs(lanes)
        gradients, totals = self.replay.gradients, self.replay.totals

        def program(*arrays: Array) -> list[Array]:
            with self.statistics.tracing(counts=True):
                remaining = iter(arrays)
                before = {key: next(remaining) for key in gradients}
                totalled = {key: next(remaining) for key in totals}
                tape = {key: next(remaining) for key in tape_specs}
                sound = next(remaining)
                operands = self.segments.legs.operands([*remaining])
                after, totalled, looked_up = self.replay.segment(before, totalled, tape, sound, operands)
                return [*after.values(), *(totalled[key] for key in totals), *looked_up]

        specs: list[Spec] = [
            (type_.dtype, (lanes, *([None] if stacked else []), *type_.shape)) for type_, stacked in gradients.values()
        ]
        specs += [(type_.dtype, (*([lanes] if self.by_lane else []), *type_.shape)) for type_ in totals.values()]
        specs += [*tape_specs.values(), ("bool", (lanes,)), *self.forward.operand_specs]
        return self._once(("undo", lanes), lambda: self.backend.compile(program, self.jit, specs))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def _known(lanes: Any) -> int | None:
    return lanes if isinstance(lanes, int) else None
