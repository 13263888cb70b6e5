"""The forward and backward pass through a program: runs that are taped, and the undoing of these.

Both are plain graphs around compiled segments: the way forward puts what each segment has recorded at the end of lists,
the way back takes it from there. So they run in a caller's graph as well, however many segments there will be.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.runtime.adjoint.backward_sweep import Replay
from pcbatch.runtime.adjoint.checkpointing import Checkpoints, KeepAll, ResidualStore
from pcbatch.runtime.adjoint.forward import Forward
from pcbatch.runtime.adjoint.refusing import refusing
from pcbatch.runtime.adjoint.seeds import GradientFlow, by_parameters, seeded
from pcbatch.runtime.adjoint.segments import Segments
from pcbatch.runtime.adjoint.tape import Sizes, Sources, Tapes
from pcbatch.runtime.backends.protocol import Array, Spec
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.outcome import Outcome, Statistics
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.state import Layout, Limits
from pcbatch.runtime.store.cache_session import Name
from pcbatch.threads import once

POLICIES: dict[str, Callable[[Segments], ResidualStore]] = {"keep": KeepAll, "replay": Checkpoints}
"""The stores of segments, by the option `tape`."""


SEGMENTS = 3
"""Position of the number of segments among the inputs of the backward pass."""


@dataclass(frozen=True)
class BackwardInputs:
    """The end of a run, for its backward pass: `examples` in a room for `every` one, `sound` those that count.

    Stacks have so many `entries`; `width` is the number of lanes, if that is not one for each example.
    """

    examples: Array
    every: Any
    entries: Array
    width: Array | None
    pointers: Mapping[str, Array]
    shared: Sequence[Array]
    seeds: Sequence[Array | None]
    sound: Array


class BackwardPass(Protocol):
    """The interface to gradients through a taped run: see `TapedProgram.gradients`."""

    def gradients(
        self, taped: TapedRun, shared: Sequence[Array], upstream: Sequence[Array | None], lanes: Any
    ) -> list[Array | None]:
        """The gradients by the leaves of all arguments, then by those of all shared operands."""


@dataclass(frozen=True)
class TapedRun:
    """A taped run: its maker, its outcome, and its records for the backward pass.

    `aside` is what has been put aside of so many `segments`; `pointers` are those at which the results lie. It had so
    many lanes, examples and idle ones: `room`.
    """

    way: BackwardPass
    outcome: Outcome
    aside: Sequence[Array]
    segments: Array
    pointers: Sequence[Array]
    room: Any
    operands: Sequence[Array] = ()
    """The operands of segments before shared operands."""
    lanes: Array | None = None
    """The final number of lanes, if not one for each example."""
    told: Sequence[Array] = ()
    """See `Forward.told`."""
    tape: Sequence[Array] = ()
    """The tape of the first segment, as it is, where only further ones are put aside."""
    is_alone: bool = False
    """True if there are no further ones; only then is it known."""


class TapedProgram:
    """Runs one program taped, in lockstep, and gives gradients. Compiled once for each room of lanes.

    `tape` says what is put aside of each segment: a name of `POLICIES`. Stacks have room for `capacity` calls at first.
    `by_lane`: gradients by shared operands are those of each lane, `[lanes, ...]`. `is_fixed`: it is inside a caller's
    compiled program (`custom_gradient`); `is_mixed`: other code runs between the blocks that are taped. A cache on disk
    knows the program by `digest`, as in `Machine`.
    """

    def __init__(
        self,
        program: Program,
        context: Context,
        *,
        jit: bool,
        tape: str,
        statistics: Statistics,
        sizes: Sizes | None,
        sources: Sources | None,
        by_lane: bool,
        capacity: int,
        is_fixed: bool = False,
        is_mixed: bool = False,
        digest: Callable[[], str | None] = lambda: None,
    ):
        self.program, self.context, self.backend, self.jit = program, context, context.backend, jit
        self.layout: Layout = context.layout
        self.limits: Limits = context.limits
        self.by_lane, self.statistics, self.capacity = by_lane, statistics, capacity
        self._sizes, self._sources, self.tape, self._plain_digest = sizes, sources, tape, digest
        self.is_fixed, self.is_mixed = is_fixed, is_mixed
        self._made: dict[Any, Any] = {}

    @cached_property
    def tapes(self) -> Tapes:
        """The tapes of a run; GradientError where it has no backward pass."""
        return Tapes(self.context, self._sizes, self._sources)

    @cached_property
    def segments(self) -> Segments:
        """The segments of a run."""
        return Segments(self.context, self.tapes)

    @cached_property
    def put_aside(self) -> ResidualStore:
        """The store of tapes for the backward pass."""
        return POLICIES[self.tape](self.segments)

    @cached_property
    def forward(self) -> Forward:
        """Runs them."""
        return Forward(self.segments, self.put_aside, self.name_of, jit=self.jit, statistics=self.statistics)

    @cached_property
    def replay(self) -> Replay:
        """Undoes them."""
        loop = self.segments.legs.loop
        return Replay(
            self.tapes,
            loop.chunked,
            by_lane=self.by_lane,
            sums=self.is_fixed,
            together=loop.trips_together,
            dear=loop.dear,
        )

    @cached_property
    def flow(self) -> GradientFlow:
        """The flow of gradients."""
        return GradientFlow(self.replay)

    def name_of(self, *part: Any) -> Name:
        """Return the name of a part of the program on disk."""
        return Name(lambda: self._digest, part, self.statistics.note, self.context.notes)

    @once
    def _digest(self) -> str | None:
        """The digest of the program with its derivatives, and of all else that what is compiled depends on."""
        plain = self._plain_digest()
        linear = [each for tape in self.tapes.blocks.values() for each in tape.linear.values()]
        found = [] if plain is None else [plain, *(each.described() for each in linear)]
        if not found or None in found:
            return None
        sources = self._sources and [sorted(each) for each in self._sources]
        return hashlib.sha256(repr((found, self.tapes.sizes, sources, *self._distinctions())).encode()).hexdigest()

    def _distinctions(self) -> tuple[Any, ...]:
        """Return the further facts that tell apart ways of one program."""
        return self.jit, self.tape, self.by_lane, self.is_fixed, self.is_mixed, self.limits

    def nothing(self) -> list[Array | None]:
        """The gradients of a batch of no lanes."""
        return self.flow.nothing()

    # -- forward -------------------------------------------------------------------------------------------------------

    def run_taped(self, arrays: Sequence[Array], lanes: Any, room: int | None, capacity: int | None = None) -> TapedRun:
        """A taped run in a room for so many lanes, None where that is not known.

        On stacks of some `capacity`, on which it may end before its time, if that is given.
        """
        every = self._extended(arrays, lanes, room)
        given = [*every, *self._first_size(lanes, room), self._count(lanes)]
        with self.statistics.timed(), refusing(self.program, self.backend, self.jit):
            form, every_found = self._run(given, room, capacity)
        found = iter(every_found)
        legs = self.segments.legs
        reached = next(found)
        is_over = self.backend.is_concrete(reached)
        reached = int(reached) if is_over else reached
        counters, outputs = (
            {key: next(found) for key in keys} for keys in (legs.loop.counter_specs, self.layout.outputs)
        )
        pointers = [next(found) for _ in self.forward.pointers]
        told = [next(found) for _ in range(self.forward.tells)]
        segments, (*aside,) = next(found), found
        tape = aside[len(aside) - self.forward.recorded :] if form != "aside" else []
        outcome = legs.outcome(counters, outputs, reached, None if room is None or room == lanes else lanes)
        outcome = replace(outcome, tape=self.tapes.bytes_by_span)
        if capacity is None and not legs.limits.roomy and is_over:
            self._note_capacity(reached, outcome)
        aside = aside[: len(aside) - len(tape)]
        known: dict[str, Any] = {"told": told, "tape": tape, "is_alone": form == "alone"}
        return self._completed(TapedRun(self, outcome, aside, segments, pointers, room, **known), every)

    def _run(self, given: Sequence[Array], room: int | None, capacity: int | None) -> tuple[str, list[Array]]:
        """Run forward, all "aside"; or return last the tape of the "first" segment, which may be "alone"."""
        forward = self.forward
        if room is None or self.tape != "keep":
            run = self._once(("forward", room, capacity), lambda: forward.run(room, capacity))
            return "aside", list(self.backend.forbid_gradients(run)(*given))
        if not self.backend.runs_now():
            run = self._once(("described", room), lambda: forward.described(room))
            return "first", list(self.backend.forbid_gradients(run)(*given))
        first = self._once(("alone", room, capacity), lambda: forward.alone(room, capacity))
        goes_on, *found = self.backend.forbid_gradients(first)(*given)
        packed = found[forward.ends :]
        tape = packed[len(packed) - forward.recorded :]
        if goes_on:
            rest = self._once(("rest", room, capacity), lambda: forward.rest(room, capacity, packed, given))
            return "first", [*self.backend.forbid_gradients(rest)(*packed, *given), *tape]
        return "alone", [*found[: forward.ends], self._count(1), *tape]

    def _first_size(self, lanes: Any, room: int | None) -> list[Array]:
        """Return the initial capacity of stacks."""
        return [self._count(self.capacity)]

    def _completed(self, taped: TapedRun, arrays: Sequence[Array]) -> TapedRun:
        """Return `taped` with the run's inputs that the backward pass needs."""
        return taped

    def _count(self, number: Any) -> Array:
        """A number as an array, in ordinary code the same one whenever it is asked for: 15 us a call."""
        if not isinstance(number, int):
            return number
        if not self.backend.runs_now():
            return self.backend.constant(number)
        return self._once(("number", number), lambda: self.backend.constant(number))

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
        self, taped: TapedRun, shared: Sequence[Array], upstream: Sequence[Array | None], lanes: Any
    ) -> list[Array | None]:
        """The gradients by the leaves of all arguments, then by those of all shared operands; None where none flows.

        `upstream` are those by the leaves of the results. Lanes that have failed give nothing and get nothing.
        """
        if taped.way is not self:
            return taped.way.gradients(taped, shared, upstream, lanes)
        wanted, room = tuple(each is not None for each in upstream), taped.room
        kind = room, wanted, self._fixed(taped), "alone" if taped.is_alone else "first" if taped.tape else "aside"
        back = self._once(("back", *kind), lambda: self._back(*kind))
        by_lane = [taped.outcome.status, *(each for each in upstream if each is not None)]
        if room is not None and room != lanes:
            by_lane = [self.backend.extended(each, room) for each in by_lane]
        status, *seeds = by_lane
        given = [
            *(self._count(lanes), status, self._count(taped.outcome.stack_entries), taped.segments),
            *([] if taped.lanes is None else [taped.lanes]),
            *(*taped.pointers, *taped.operands, *shared, *seeds, *taped.tape, *taped.aside),
        ]
        with self.statistics.timed(), refusing(self.program, self.backend, self.jit):
            found = list(self.backend.forbid_gradients(back)(*given))
        if room is not None and room != lanes:
            count = self.flow.by_lane
            found = [*(self.backend.rows_at(each, 0, lanes) for each in found[:count]), *found[count:]]
        return self.flow.packed(iter(found))

    def _fixed(self, taped: TapedRun) -> int | None:
        """The capacity of stacks that a run was compiled for, if it is one alone."""
        return int(taped.outcome.stack_entries) - 1 if self.is_mixed and self.layout.all_stacks else None

    def _back(self, lanes: int | None, wanted: Sequence[bool], capacity: int | None, form: str) -> Callable[..., Any]:
        """The program of the way back through a run whose first tape is as `_run` says."""
        count = 0 if form == "aside" else self.forward.recorded

        def program(*arrays: Array) -> list[Array]:
            ended, aside = self._ended(arrays, wanted)
            tape, aside, segments = aside[:count], aside[count:], arrays[SEGMENTS]

            def alone() -> list[Array]:
                """Go back through the only segment, the usual case."""
                found = list(self._alone(lanes, wanted)(*arrays[: len(arrays) - len(aside)]))
                first = len(found) - self.replay.lookups.count
                return [*found[:first], *self.replay.lookups.summed(self.replay.lookups.flat(found[first:]))]

            def every() -> list[Array]:
                return self._of_every(ended, segments, aside, tape, lanes, capacity)

            if form == "first":
                return self.backend.cond(self.backend.equal(segments, 1), alone, every)
            return alone() if form == "alone" else every()

        return self.backend.compile(program, False, name=self.name_of("back", lanes, wanted, capacity, form))

    def _ended(self, arrays: Sequence[Array], wanted: Sequence[bool]) -> tuple[BackwardInputs, list[Array]]:
        """Split the inputs of the backward pass into the end of the run, and all that follows."""
        remaining = iter(arrays)
        examples, status, entries, _ = (next(remaining) for _ in range(SEGMENTS + 1))
        width = next(remaining) if self.has_width else None
        pointers = {name: next(remaining) for name in self.forward.pointers}
        shared = [next(remaining) for _ in self.forward.operand_specs]
        seeds = [next(remaining) if each else None for each in wanted]
        every = self.backend.lanes_of(status)
        sound = (self.backend.array(status, "int32") == 0) & (self.backend.lane_numbers(every) < examples)
        return BackwardInputs(examples, every, entries, width, pointers, shared, seeds, sound), [*remaining]

    def _first_gradients(self, ended: BackwardInputs) -> dict[str, Array]:
        """The gradients of lanes and the totals where the way back begins."""
        seeds, replay = iter(ended.seeds), self.replay
        gradients = seeded(replay, seeds, ended.pointers, ended.sound, ended.width, ended.entries, ended.examples)
        return gradients | {key: replay.nothing(type_, ended.every) for key, type_ in replay.totals.items()}

    def _given(self, ended: BackwardInputs, after: Mapping[str, Array]) -> list[Array]:
        """The gradients by arguments, and the totals, of those of lanes and the totals where it ends."""
        first = by_parameters(self.replay, after, ended.every, ended.width)
        return [*first, *(after[key] for key in self.replay.totals)]

    def _alone(self, lanes: int | None, wanted: Sequence[bool]) -> Callable[..., Any]:
        """Return the compiled program of the backward pass through one segment; lookups come last.

        Where gradients begin is made inside, for XLA copies all that changes of what is made outside.
        """

        def program(*arrays: Array) -> list[Array]:
            ended, tape = self._ended(arrays, wanted)
            before = self._first_gradients(ended)
            found = list(self.undo(lanes)(*before.values(), *tape, ended.sound, *ended.shared))
            return [*self._given(ended, dict(zip(before, found, strict=False))), *found[len(before) :]]

        return self._once(("alone back", lanes, wanted), lambda: self.backend.compile(program, self.jit))

    def _of_every(
        self,
        ended: BackwardInputs,
        segments: Array,
        aside: Sequence[Array],
        tape: Sequence[Array],
        lanes: int | None,
        capacity: int | None,
    ) -> list[Array]:
        """Run the backward pass through any number of segments; `tape` is that of the first, if there is one."""
        before = self._first_gradients(ended)
        compiled, lookups, shared = self.undo(lanes), self.replay.lookups, ended.shared
        pool = self._pool(lanes if lanes is not None else ended.every)

        def run(flat: Sequence[Array]) -> Sequence[Array]:
            return list(self.forward.segment(pool, capacity)(*flat, *shared, ended.examples))

        def through(arrays: Sequence[Array], tape: Sequence[Array], rows: Sequence[Array]) -> Any:
            found = list(compiled(*arrays, *tape, ended.sound, *shared))
            return found[: len(before)], lookups.with_more(rows, lookups.flat(found[len(before) :]))

        def undone(carried: Any) -> Any:
            number, aside, arrays, rows = carried
            aside, tape = self.put_aside.last(aside, number, pool, run)
            return number - 1, aside, *through(arrays, tape, rows)

        number = segments - 1 if tape else segments
        start = (number, [*aside], [*before.values()], lookups.none())
        is_left: Callable[[Any], Array] = lambda carried: carried[0] > 0  # noqa: E731
        *_, found, rows = self.backend.while_loop(is_left, undone, start, seldom=True, stops=True)
        if tape:
            found, rows = through(found, tape, rows)
        return [*self._given(ended, dict(zip(before, found, strict=True))), *lookups.joined(rows)]

    has_width = False
    """True if a run has as many lanes as it needs, not one for each example."""

    def _pool(self, examples: Any) -> Pool:
        """The pool of a run."""
        return Pool.of(examples)

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

        width = None if self.has_width else lanes
        specs: list[Spec] = [
            (type_.dtype, (width, *([None] if stacked else []), *type_.shape)) for type_, stacked in gradients.values()
        ]
        specs += [(type_.dtype, (*([lanes] if self.by_lane else []), *type_.shape)) for type_ in totals.values()]
        specs += [*tape_specs.values(), ("bool", (lanes,)), *self.forward.operand_specs]
        return self._once(("undo", lanes), lambda: self.backend.compile(program, self.jit, specs))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
