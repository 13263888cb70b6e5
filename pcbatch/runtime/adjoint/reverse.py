"""Reverse mode of one program: runs that are taped, and the way back through them.

Both are plain graphs around compiled segments: the way forward puts what each segment has recorded at the end of lists,
the way back takes it from there. So they run in a caller's graph as well, however many segments there will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from pcbatch.ir.machine import Program
from pcbatch.ir.status import LaneStatus
from pcbatch.ir.types import TensorType
from pcbatch.optimize.machine.compaction import DEFAULT, Compaction
from pcbatch.runtime.adjoint import fixed
from pcbatch.runtime.adjoint.beginnings import Beginnings
from pcbatch.runtime.adjoint.borders import by_parameters, seeded
from pcbatch.runtime.adjoint.forward import Forward
from pcbatch.runtime.adjoint.hidden import with_hidden
from pcbatch.runtime.adjoint.put_aside import PutAside, Whole
from pcbatch.runtime.adjoint.refusing import refusing
from pcbatch.runtime.adjoint.replay import Replay
from pcbatch.runtime.adjoint.segments import Segments
from pcbatch.runtime.adjoint.tape import Sizes, Sources, Tapes
from pcbatch.runtime.adjoint.text import print_adjoint
from pcbatch.runtime.backends.protocol import Array, Backend, Spec
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.limits import Limits
from pcbatch.runtime.machine.outcome import Outcome, Statistics
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.schedules import schedule_named

POLICIES: dict[str, Callable[[Segments], PutAside]] = {"keep": Whole, "replay": Beginnings}
"""What is put aside of segments, by the option `tape`."""


@dataclass(frozen=True)
class Taped:
    """A taped run: what it gave, and what it left for the way back.

    `aside` is what has been put aside of so many `segments`; `pointers` are those at which the results lie.
    """

    outcome: Outcome
    aside: Sequence[Array]
    segments: Array
    pointers: Sequence[Array]


class Reverse:
    """Runs one program taped, in lockstep, and gives gradients. Compiled once for each number of lanes.

    `tape` says what is put aside of each segment: a name of `POLICIES`. `most`, if that is given, is how many rows of a
    block a run may have inside a caller's compiled program; `is_fixed`: it is for such a one (`fixed.py`).
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
        most: int | None = None,
        is_fixed: bool = False,
    ):
        given: dict[str, Any] = {"schedule": schedule, "jit": jit, "max_depth": max_depth, "max_steps": max_steps}
        given |= {"compaction": compaction, "tape": tape, "most": most}
        self._anew = partial(Reverse, program, backend, **given, statistics=statistics, sizes=sizes)
        self._by_sources: dict[tuple[Sources, bool], Reverse] = {}
        self.by_lane, self.most, self.is_fixed = by_lane, most, is_fixed
        program, self.hidden = with_hidden(program, backend)
        """What helpers capture, to be given behind all other shared operands."""
        self.program, self.backend, self.jit = program, backend, jit
        layout, limits = Layout(program), Limits.of(max_depth, max_steps)
        if not layout.all_stacks or is_fixed:
            limits = replace(limits, roomy=True)
        self.layout, self.limits = layout, limits
        self.context = Context(backend, layout, limits, not jit, schedule_named(schedule), compaction)
        self._sizes, self._sources, self._tape = sizes, sources, tape
        self.statistics = Statistics() if statistics is None else statistics
        self.capacity = limits.first_capacity
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
        """The same inside a caller's compiled program."""
        assert self.most is not None
        sizes = fixed.sizes(self.most, len(self.program.blocks))
        return self._anew(sizes=sizes, sources=self._sources, is_fixed=True)

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

    def text(self, lanes: Any) -> str:
        """The way back as text."""
        return print_adjoint(self.replay, lanes)

    # -- forward -------------------------------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Array], lanes: Any) -> Taped:
        """Run `lanes` lanes on such arrays, taped."""
        forward = self._once(("forward", _known(lanes)), lambda: self.forward.run(_known(lanes)))
        given = [*arrays, self.backend.constant(self.capacity), self.backend.constant(0) + lanes]
        with refusing(self.program, self.backend, self.jit):
            found = iter(list(self.backend.unseen(forward)(*given)))
        legs = self.segments.legs
        capacity = next(found)
        counters, outputs = (
            {key: next(found) for key in keys} for keys in (legs.loop.counter_specs, self.layout.outputs)
        )
        pointers = [next(found) for _ in self.forward.pointers]
        segments = next(found)
        outcome = replace(legs.outcome(counters, outputs, capacity), tape=self.tapes.bytes_by_span)
        if not legs.limits.roomy and self.backend.is_concrete(outcome.status):
            self._note_capacity(int(capacity), outcome)
        return Taped(outcome, [*found], segments, pointers)

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
        wanted = tuple(each is not None for each in upstream)
        key = ("back", _known(lanes), wanted)
        back = self._once(key, lambda: self._back(_known(lanes), wanted))
        seeds = [each for each in upstream if each is not None]
        given = [
            *(taped.outcome.status, taped.outcome.stack_entries, taped.segments),
            *(*taped.pointers, *shared, *seeds, *taped.aside),
        ]
        with refusing(self.program, self.backend, self.jit):
            found = iter(list(self.backend.unseen(back)(*given)))
        return self.packed(found)

    def packed(self, arrays: Iterator[Array]) -> list[Array | None]:
        """The gradients by the leaves of all arguments and shared operands, of what a way back gives, in its order."""
        arguments, shared = self._flowing
        found = [next(arrays) if flows else None for flows in arguments]
        totals = {key: next(arrays) for key in self.replay.totals}
        for key, table in self.replay.lookups.tables.items():
            rows, numbers = next(arrays), next(arrays)
            totals[key] = self.backend.rows_of_table(rows, numbers, table)
        return [*found, *(totals.get(key) for key in shared)]

    def nothing(self) -> list[Array | None]:
        """The gradients of a batch of no lanes."""
        backend, (flows, _) = self.backend, self._flowing
        types = [leaf for name in self.program.parameters for leaf in self.layout.leaves(name)]
        found = [backend.zeros(0, leaf) for leaf, each in zip(types, flows, strict=True) if each]
        found += [self.replay.nothing(type_, 0) for type_ in self.replay.totals.values()]
        for table in self.replay.lookups.tables.values():
            rows, numbers = TensorType(table.dtype, table.shape[1:]), TensorType("int32")
            found += [backend.zeros(0, rows), backend.zeros(0, numbers)]
        return self.packed(iter(found))

    @cached_property
    def _flowing(self) -> tuple[list[bool], list[str]]:
        """By which leaves of arguments there is a gradient; the keys of those by all leaves of shared operands."""
        active = self.tapes.activity
        arguments = [
            leaf is not None and name in active.variables
            for name in self.program.parameters
            for leaf in self.tapes.floats(name)
        ]
        return arguments, [key for name in self.program.shared for key, _ in self.tapes.shared_keys(name)]

    def _back(self, lanes: int | None, wanted: Sequence[bool]) -> Callable[..., Any]:
        def program(*arrays: Array) -> list[Array]:
            remaining = iter(arrays)
            status, entries, segments = (next(remaining) for _ in range(3))
            pointers = {name: next(remaining) for name in self.forward.pointers}
            shared = [next(remaining) for _ in self.forward.operand_specs]
            seeds = iter([next(remaining) if each else None for each in wanted])
            aside = [*remaining]
            sound = self.backend.array(status, "int32") == 0
            every = self.backend.lanes_of(status)
            gradients = seeded(self.replay, seeds, pointers, sound, every, entries)
            totals = {key: self.replay.nothing(type_, every) for key, type_ in self.replay.totals.items()}
            compiled, lookups = self.undo(lanes), self.replay.lookups
            carried = (*gradients, *totals)
            pool = Pool.of(lanes if lanes is not None else every)

            def run(flat: Sequence[Array]) -> Sequence[Array]:
                return list(self.forward.segment(pool)(*flat, *shared))

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
            self.statistics.compilations += 1
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
