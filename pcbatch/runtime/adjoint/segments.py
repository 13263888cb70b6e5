"""A taped run as a sequence of segments, each a leg with tapes of its own, by one compiled program.

A segment ends when no lane can go on: because all have ended, because stacks are full, or because the tape is. Then
what it recorded is put aside and the next begins with empty tapes, and on longer stacks where lanes want room there. So
a run may be of any length, nothing grows on the way, and nothing is compiled anew but for longer stacks.

A block that is recorded does its usual work, and leaves records at its end.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pcbatch.ir.machine import Piece, Store
from pcbatch.ir.types import TensorType
from pcbatch.runtime.adjoint.tape import (
    LANE,
    LOG,
    LOGGED,
    BlockTape,
    Tapes,
    index_field,
    predicate_field,
    residual_field,
)
from pcbatch.runtime.backends.pieces import Leaves, Signature
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.machine import admission
from pcbatch.runtime.machine.blocks import BlockRunner
from pcbatch.runtime.machine.compiled_programs import NO_BUDGET
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.execution import Execution
from pcbatch.runtime.machine.guarded import MakeRunner
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.segments import Legs, Snapshot
from pcbatch.runtime.machine.state import GROWTH, ArraySpec
from pcbatch.runtime.machine.values import Rows

# -- recording ---------------------------------------------------------------------------------------------------------


class TapedExecution(Execution):
    """One run of a block, which is recorded."""

    def __init__(
        self, tapes: Tapes, context: Context, number: int, state: State, shared: Mapping[str, Leaves], rows: Rows
    ):
        super().__init__(context, number, state, shared, rows)
        self.tapes, self.tape = tapes, tapes.blocks[number]
        self.kept: dict[str, Array] = {}

    @property
    def has_gaps(self) -> bool:
        """True if rows that have entered lie among others: in a chunk they come first."""
        return self.rows.lanes is None

    def count(self) -> Array:
        """Return the number of rows kept."""
        return self.backend.sum(self.entered)

    def computed(
        self,
        piece: Piece,
        signature: Signature,
        reads: Sequence[Leaves],
        shared: Sequence[Leaves],
        taking_part: Array,
    ) -> tuple[list[list[Array]], Array | None]:
        """Compute the piece, and the residuals where a gradient flows through it."""
        linear = self.tape.linear.get(self.item)
        if linear is None:
            return super().computed(piece, signature, reads, shared, taking_part)
        lanes = self.backend.lanes_of(self.moving)
        outputs, site, residuals = linear.forward(reads, shared, lanes, taking_part, self.note)
        return [*outputs, list(residuals)], site

    def given(self, piece: Piece) -> list[list[TensorType]]:
        """Return the types of the results, and those of the residuals."""
        linear = self.tape.linear.get(self.item)
        return super().given(piece) + ([] if linear is None else [list(linear.residuals)])

    def taking_part(self, item: Piece | Store) -> Array:
        """Return which rows take part, and keep them where a predicate decides."""
        found = super().taking_part(item)
        if item.predicate is not None:
            self.kept[predicate_field(self.item)] = found
        return found

    def seen(self, arrays: Sequence[Leaves]) -> None:
        """Keep residuals, or the indices of a store."""
        field = residual_field if self.item in self.tape.linear else index_field
        for number, array in enumerate(array for group in arrays for array in group):
            self.kept[field(self.item, number)] = array

    def updates(self) -> State:
        """Return the updates, and those of the tapes: a row more for each lane that came."""
        before = super().updates()
        backend, tape = self.backend, self.tape
        self.kept |= {key: self.pointer(name) for key, name in tape.pointers.items()}
        # Lanes that fail here are among them: their rows are left out as those of all that fail.
        lanes, count = backend.lanes_of(self.entered), self.count()
        kept = {LANE: backend.lane_numbers(lanes) if self.rows.lanes is None else self.rows.lanes, **self.kept}
        if self.has_gaps:
            live, _ = backend.listed(self.entered)
            kept = {field: backend.load(rows, [], live) for field, rows in kept.items()}
        used, logged = self.state[tape.used], self.state[LOGGED]
        start = used + self.tapes.margin(tape, backend.lanes_of(self.state["pc"]))
        found: State = {}
        for field in (field for field in tape.fields if field in kept):
            found[tape.key(field)] = backend.with_rows(self.state[tape.key(field)], start, kept[field])
        found[tape.used] = used + count
        ran = backend.cast(count > 0, "int32")
        entry = backend.stack([backend.constant(self.number), count])
        found[LOG] = backend.with_rows(self.state[LOG], logged, backend.stack([entry]))
        found[LOGGED] = logged + ran
        return {**before, **found}


@dataclass(frozen=True)
class TapedRunner(BlockRunner):
    """Runs a block of which every run is recorded."""

    tapes: Tapes

    @property
    def tape(self) -> BlockTape:
        """The tape of the block."""
        return self.tapes.blocks[self.number]

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """The changed arrays, with those of the tape."""
        return tuple(sorted((*super().changes, *self.tape.keys)))

    @property
    def in_place(self) -> set[str]:
        """The arrays written in place, with those of the tape."""
        return super().in_place | {*map(self.tape.key, self.tape.fields), LOG}

    def execution(self, state: State, shared: Mapping[str, Leaves], rows: Rows) -> Execution:
        """Return a run of the block, to be recorded."""
        return TapedExecution(self.tapes, self.context, self.number, state, shared, rows)

    @property
    def can_lack_room(self) -> bool:
        """A tape can be full."""
        return True

    def has_stacks(self, state: State) -> Array | None:
        """Return which lanes have room on their stacks, whatever is on the tape; None if all are sure to."""
        return super().room(state) if super().can_lack_room else None

    def room(self, state: State) -> Array:
        """Return which lanes have room on their stacks and on the tape."""
        lanes = self.context.backend.lanes_of(state["pc"])
        on_tape, on_stacks = self.tapes.has_room(self.tape, state, lanes), self.has_stacks(state)
        return on_tape & (state["pc"] == state["pc"]) if on_stacks is None else on_tape & on_stacks


def runner(tapes: Tapes) -> MakeRunner:
    """Return the maker of block runners of a taped program."""

    def make(context: Context, number: int) -> BlockRunner:
        return TapedRunner(context, number, tapes) if number in tapes.blocks else BlockRunner(context, number)

    return make


# -- segments ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Segment:
    """The end of a segment: the standing of the run, its tape, and two scalar bools.

    `goes_on`: some lane has not ended. `lacking`: some lane wants room on its stacks.
    """

    snapshot: Snapshot
    tape: State
    goes_on: Array
    lacking: Array


class Segments:
    """The segments of the runs of one program, to be traced for any whole pool and any capacity of stacks."""

    def __init__(self, context: Context, tapes: Tapes):
        self.context, self.backend, self.tapes = context, context.backend, tapes
        self.legs = Legs(context, runner(tapes))
        self.layout = context.layout

    @property
    def keys(self) -> Sequence[str]:
        """The keys of a state, in the order in which segments pass it on."""
        return self.layout.carried

    def lanes(self, snapshot: Snapshot) -> Any:
        """Return the number of lanes of a run there."""
        return snapshot.pool.lanes

    @property
    def changed(self) -> set[str]:
        """The keys of a state's arrays that a segment may change, and of stacks that grow between two."""
        return {"pc", "room", *self.layout.all_stacks}.union(*self.legs.loop.guarded.changes)

    @property
    def held(self) -> list[ArraySpec]:
        """The contents of each array that changes, for a lane."""
        return [self.layout.arrays[key] for key in self.keys if key in self.changed]

    def segment(self, snapshot: Snapshot, shared: Sequence[Array], examples: Array) -> Segment:
        """Go on from `snapshot`, of a run of so many `examples`, with empty tapes."""
        legs, pool = self.legs, snapshot.pool
        carried = {key: snapshot.state[key] for key in self.layout.carried}
        blank = self.tapes.blank(self.backend.lanes_of(carried["pc"]), examples)
        until = self.backend.array(NO_BUDGET, "int64")
        after, counters, _ = legs.loop.run_trips(
            {**carried, **blank}, snapshot.counters, legs.operands(shared), until, examples=examples
        )
        lacking = self._lacking(after)
        goes_on = self.backend.any(after["pc"] < self.layout.start)
        tape = {key: after.pop(key) for key in blank}
        state, outputs = admission.finish(self.backend, self.layout, pool, {**snapshot.state, **after}, {})
        return Segment(replace(snapshot, state=state, counters=counters, outputs=outputs), tape, goes_on, lacking)

    def _lacking(self, state: State) -> Array:
        """Return a scalar bool: whether a lane waits for room on its stacks."""
        found = []
        for number, each in enumerate(self.legs.loop.guarded.runners):
            room = each.has_stacks(state) if isinstance(each, TapedRunner) else None
            if not isinstance(each, TapedRunner) and each.can_lack_room:
                room = each.room(state)
            if room is not None:
                found.append(self.backend.any((state["pc"] == number) & ~room))
        nobody = self.backend.constant(False)
        return functools.reduce(operator.or_, found, nobody)

    def grown(self, snapshot: Snapshot, lacking: Array) -> Snapshot:
        """The same run, on the next larger stacks if lanes want room there."""
        if self.legs.limits.roomy:
            return snapshot
        backend, largest = self.backend, self.legs.limits.largest_capacity
        capacity = backend.constant(0) + self.legs.capacity(snapshot)
        larger = backend.where(capacity < largest // GROWTH, capacity * GROWTH, backend.constant(largest))
        wanted = backend.where(lacking, larger, capacity)
        return replace(snapshot, state=self.layout.grown(backend, snapshot.state, wanted))

    # -- flat, as compiled programs take and give it -------------------------------------------------------------------

    def pack(self, segment: Segment) -> list[Array]:
        """All arrays that a segment makes."""
        now = segment.snapshot
        return [
            *(now.state[key] for key in self.keys),
            *(now.counters[key] for key in self.legs.loop.counter_specs),
            *(now.outputs[key] for key in self.layout.outputs),
            segment.goes_on,
            segment.lacking,
            *(segment.tape[key] for key in self.tapes.keys),
        ]

    def unpack(self, arrays: Sequence[Array], pool: Pool) -> Segment:
        """The inverse of `pack`."""
        remaining = iter(arrays)
        state, counters, outputs = (
            _next(remaining, keys) for keys in (self.keys, self.legs.loop.counter_specs, self.layout.outputs)
        )
        goes_on, lacking = next(remaining), next(remaining)
        tape = _next(remaining, self.tapes.keys)
        return Segment(Snapshot(pool, state, counters, {}, outputs), tape, goes_on, lacking)


def _next(remaining: Iterator[Array], keys: Sequence[str] | Mapping[str, object]) -> State:
    return {key: next(remaining) for key in keys}
