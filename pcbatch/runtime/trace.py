"""The schedule of a run, step by step: recorded in the machine's loop, and read afterwards.

The record is an array for a fixed number of trips, int32 `[trips, 3 blocks + 1]`: for each trip how many lanes ran each
block at first, how often it ran, for how many lanes in all, and how many had not ended when the trip began. It travels
with the machine's counters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pcbatch.diagnostics import Span, UsageError
from pcbatch.runtime import effects, listing, places
from pcbatch.runtime.backends.protocol import Array, Backend
from pcbatch.runtime.outcome import Outcome
from pcbatch.runtime.schedules.trip import Trip
from pcbatch.runtime.table import Program


def recorded(backend: Backend, record: Array, trip: Trip, live: Array, number: Array) -> Array:
    """`record` with `trip` in row `number` (int64), unless it is full; `live` lanes had not ended before the trip."""
    fits = number < backend.cast(backend.lanes_of(record), "int64")
    place = backend.cast(backend.where(fits, number, number * 0), "int32")
    row = backend.joined(trip.ran, trip.times, trip.lanes, backend.stack([live]))
    return backend.masked_store(record, [], backend.stack([fits]), backend.stack([row]), backend.stack([place]))


@dataclass(frozen=True)
class Step:
    """A block that ran in a trip (counted from 1): for `ran` lanes, while `waiting` others had not ended before it.

    It ran `times` times in a row: for the `ran` lanes, and again for those of them that came back, `lanes` in all.
    """

    trip: int
    block: str
    function: str
    span: Span | None
    ran: int
    waiting: int
    times: int
    lanes: int


@dataclass(frozen=True)
class Trace:
    """The steps of the first trips of a run, in order, and how many trips came after those.

    The steps of a trip are in the order in which it goes through the blocks (`schedules.flow.Flow.order`).
    """

    steps: tuple[Step, ...]
    trips: int
    left_out: int

    @classmethod
    def of(cls, program: Program, outcome: Outcome) -> Trace:
        """The trace of a run of `program`; UsageError PCB561 if none was recorded."""
        if outcome.trace is None:
            raise UsageError(
                "PCB561",
                f"the schedule of this run of {program.name} was not recorded; run it under "
                f"{program.name}.options(trace=1000), which records the first 1000 trips",
            )
        trips, record = int(outcome.trips), np.asarray(outcome.trace)
        blocks = program.blocks
        spans = [block.span or next(iter(places.spans(program, block)), None) for block in blocks]
        order = effects.flow(program).order
        steps = []
        for trip, row in enumerate(record[:trips]):
            ran, times, lanes = row[:-1].reshape(3, len(blocks)).tolist()
            for n in order:
                if ran[n]:
                    where = (blocks[n].label, blocks[n].function, spans[n])
                    steps.append(Step(trip + 1, *where, ran[n], int(row[-1]) - ran[n], times[n], lanes[n]))
        return cls(tuple(steps), trips, max(0, trips - len(record)))

    def __str__(self) -> str:
        rows = [
            (f"{step.trip:,}", step.block, f"{step.ran:,}", f"{step.waiting:,}", f"{step.times:,}", f" {_where(step)}")
            for step in self.steps
        ]
        more = [f"and {self.left_out:,} more trips, which were not recorded"] if self.left_out else []
        return "\n".join([*listing.table(("trip", "block", "lanes", "waiting", "times", ""), rows), *more])

    def __repr__(self) -> str:
        return f"<pcbatch.Trace: {len(self.steps)} steps in {self.trips - self.left_out} of {self.trips} trips>"


def _where(step: Step) -> str:
    """The function, the line, and its text."""
    if step.span is None:
        return step.function
    return f"{step.function}:{step.span.line}  {listing.line_text(step.span.file, step.span.line).strip()}"
