"""A taped run as a sequence of segments, each a leg with tapes of its own, by one compiled program.

A segment ends when no lane can go on: because all have ended, because stacks are full, or because the tape is. Then
what it recorded is put aside and the next begins with empty tapes, and on longer stacks where lanes want room there. So
a run may be of any length, nothing grows on the way, and nothing is compiled anew but for longer stacks.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcbatch.runtime.adjoint.record import TapedRunner, runner
from pcbatch.runtime.adjoint.tape import Tapes
from pcbatch.runtime.backends.protocol import Array, State
from pcbatch.runtime.machine import admission
from pcbatch.runtime.machine.compiled_programs import NO_BUDGET
from pcbatch.runtime.machine.context import Context
from pcbatch.runtime.machine.pool import Pool
from pcbatch.runtime.machine.segments import Legs, Snapshot
from pcbatch.runtime.machine.state import GROWTH, ArraySpec


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
