"""The schedule of a run, step by step, as it was recorded (`runtime.machine.loop`)."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from pcbatch.errors import Span, UsageError
from pcbatch.ir import machine
from pcbatch.ir.machine import Program
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import formatting
from pcbatch.runtime.schedules.block_graph import BlockGraph

# -- utilization -------------------------------------------------------------------------------------------------------
# Utilisation of the lanes of a run: active lanes over computed rows, counted where blocks run.

Key = TypeVar("Key", int, str)


@dataclass(frozen=True)
class Utilization:
    """The share of computed rows that belonged to lanes that took part.

    A block that runs computes a row for each lane of the batch, or, where it runs on gathered lanes, for some of them.
    `active` counts, by block label, the rows that were of use, `executed` all of them. A source line's rows are those
    of all blocks that contain a part of it, a function's those of all its blocks. Lines are those of the file that the
    entry function stands in; `Run.profile()` has those of all files.
    """

    active: Mapping[str, int]
    executed: Mapping[str, int]
    lines: Mapping[str, tuple[int, ...]] = field(repr=False)
    """The source lines of each block."""
    functions: Mapping[str, str] = field(repr=False)
    """The function of each block."""

    @classmethod
    def of(cls, program: Program, active: Mapping[str, int], executed: Mapping[str, int]) -> Utilization:
        """The utilisation of a run of `program` with these counts."""
        file = machine.file_of(program, program.blocks[0].function)
        lines = {}
        for block in program.blocks:
            spans = [span for span in machine.spans(program, block) if span.file == file]
            lines[block.label] = tuple(sorted({n for span in spans for n in range(span.line, span.end_line + 1)}))
        return cls(active, executed, lines, {block.label: block.function for block in program.blocks})

    @property
    def overall(self) -> float:
        """The part of all rows that was of use; 1 if none was computed."""
        return ratio(sum(self.active.values()), sum(self.executed.values()))

    @property
    def by_block(self) -> dict[str, float]:
        """The part of each block's rows that was of use, by label, for blocks that ran."""
        return {label: ratio(self.active[label], rows) for label, rows in self.executed.items() if rows}

    @property
    def by_function(self) -> dict[str, float]:
        """The part of each function's rows that was of use, for functions that ran; the entry comes first."""
        groups = {label: (name,) for label, name in self.functions.items()}
        active, executed = _summed(self.active, groups), _summed(self.executed, groups)
        return {name: ratio(active[name], rows) for name, rows in executed.items() if rows}

    @property
    def by_line(self) -> dict[int, float]:
        """The part of each source line's rows that was of use, for lines that ran."""
        active = _summed(self.active, self.lines)
        return {line: ratio(active[line], rows) for line, rows in self.rows_by_line.items() if rows}

    @property
    def rows_by_line(self) -> dict[int, int]:
        """The number of rows that were computed for each source line."""
        return dict(sorted(_summed(self.executed, self.lines).items()))

    def __repr__(self) -> str:
        return f"<pcbatch.Utilization: {self.overall:.0%} of {sum(self.executed.values())} rows>"


def _summed(rows: Mapping[str, int], groups: Mapping[str, tuple[Key, ...]]) -> dict[Key, int]:
    """The rows of the blocks of each group; `groups` has those that a block belongs to."""
    found: defaultdict[Key, int] = defaultdict(int)
    for label, keys in groups.items():
        for key in keys:
            found[key] += rows[label]
    return dict(found)


def ratio(part: float, whole: float) -> float:
    """`part / whole`, 1 of nothing."""
    return part / whole if whole else 1.0


# -- trace -------------------------------------------------------------------------------------------------------------

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
        spans = [block.span or next(iter(machine.spans(program, block)), None) for block in blocks]
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
        table = formatting.columns(("trip", "block", "lanes", "waiting", "times", ""), rows)
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
    return f"{run.function}:{run.span.line}  {formatting.line_text(run.span.file, run.span.line).strip()}"
