"""The schedule of a run, step by step, as it was recorded (`runtime.machine.recording`)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from pcbatch.errors import Span, UsageError
from pcbatch.ir.analysis import source_locations
from pcbatch.ir.machine import Program
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import listing
from pcbatch.runtime.schedules.block_graph import BlockGraph

LEGEND = (
    "trip: the turn of the machine's loop; lanes: for how many the block ran; waiting: how many others were at other"
    "\nblocks; times: how often it ran in a row, for the same lanes as long as they came back to it"
)


@dataclass(frozen=True)
class BlockRun:
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
    """The block runs of the first trips of a run, in order, and how many trips came after those.

    Those of a trip are in the order in which it goes through the blocks (`schedules.block_graph.BlockGraph.order`).
    """

    block_runs: tuple[BlockRun, ...]
    trips: int
    left_out: int

    @classmethod
    def of(cls, program: Program, outcome: Outcome) -> Trace:
        """The trace of a run of `program`; UsageError PCB561 if none was recorded."""
        if outcome.trace is None:
            raise not_recorded(program.name, "schedule")
        trips, blocks = int(outcome.trips), program.blocks
        record = np.asarray(outcome.trace)[:-1]
        rows = record[:trips]
        changes = np.diff(rows[:, :2], axis=0, prepend=np.zeros_like(rows[:1, :2]))  # modulo 2**32, as the totals are
        spans = [block.span or next(iter(source_locations.spans(program, block)), None) for block in blocks]
        order = BlockGraph.of(program).order
        found = []
        for trip, (change, (_, _, ran, live)) in enumerate(zip(changes.tolist(), rows.tolist(), strict=True)):
            times, lanes = change
            for n in order:
                if ran[n]:
                    where = (blocks[n].label, blocks[n].function, spans[n])
                    found.append(BlockRun(trip + 1, *where, ran[n], sum(live) - ran[n], times[n], lanes[n]))
        return cls(tuple(found), trips, max(0, trips - len(record)))

    @property
    def steps(self) -> tuple[BlockRun, ...]:
        """The old name of `block_runs`."""
        warnings.warn("Trace.steps is now Trace.block_runs", DeprecationWarning, stacklevel=2)
        return self.block_runs

    def __str__(self) -> str:
        rows = [
            (f"{run.trip:,}", run.block, f"{run.ran:,}", f"{run.waiting:,}", f"{run.times:,}", f" {_where(run)}")
            for run in self.block_runs
        ]
        more = [f"and {self.left_out:,} more trips, which were not recorded"] if self.left_out else []
        table = listing.table(("trip", "block", "lanes", "waiting", "times", ""), rows)
        return "\n".join([*table, *more, "", LEGEND])

    def __repr__(self) -> str:
        return (
            f"<pcbatch.Trace: {len(self.block_runs)} block runs in {self.trips - self.left_out} of {self.trips} trips>"
        )


def not_recorded(name: str, what: str) -> UsageError:
    """The error for a request of what a run did not record: its "schedule", or its "stacks"."""
    others = "" if what == "schedule" else ', or with strategy="local" for frames'
    return UsageError(
        "PCB561",
        f"the {what} of this run of {name} {'was' if what == 'schedule' else 'were'} not recorded; run it under "
        f"{name}.options(trace=1000), which records the first 1000 trips{others}",
    )


def _where(run: BlockRun) -> str:
    """The function, the line, and its text."""
    if run.span is None:
        return run.function
    return f"{run.function}:{run.span.line}  {listing.line_text(run.span.file, run.span.line).strip()}"
