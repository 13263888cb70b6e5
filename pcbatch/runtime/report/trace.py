"""The schedule of a run, step by step, as it was recorded (`runtime.machine.loop`).

Pictures show which blocks ran for how many lanes, trip by trip, and all stacks after a step.
They are drawn with matplotlib, which is imported when it is asked for.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from pcbatch.errors import Span, UsageError, needed
from pcbatch.ir import machine, values
from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.runtime.machine.outcome import Outcome, Standing
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.report import formatting
from pcbatch.runtime.report.formatting import written
from pcbatch.runtime.schedules.schedule_step import BlockGraph

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

    Those of a trip are in the order in which it goes through the blocks (`schedules.schedule_step.BlockGraph.order`).
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


# -- pictures ----------------------------------------------------------------------------------------------------------


BLOCKS = 30
"""The number of blocks that are drawn: those that ran for most lanes."""
COLUMNS = 500
"""The largest number of columns for the trips; a column of several trips has the mean of them."""
TEXT = 40
"""The number of characters of a source line that stand beside its block."""
LANES, ENTRIES, LETTERS = 16, 10, 12
"""The numbers of lanes whose stacks are drawn, of their newest entries, and of characters of a value."""
COUNTER, FRAMES, MORE = "program counter", "frames", ".."


def picture(program: Program, trace: Trace, used: Utilization, lanes: int, title: str) -> Any:
    """A figure of `trace`, of a run of so many lanes; UsageError PCB564 without matplotlib."""
    figure = _figure()
    shown = _shown(trace)
    ran, live = _over_time(trace, shown)
    last = trace.trips - trace.left_out
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 2 + 0.2 * len(shown)), width_ratios=(3, 1))
    top = figure.add_subplot(grid[0, 0])
    steps = np.linspace(0, last, live.shape[0] + 1)
    top.stairs(live, steps, fill=True, color="silver")
    top.set(ylabel="lanes at work", xlim=(0, max(last, 1)), ylim=(0, max(lanes, 1)), title=title)
    heat = figure.add_subplot(grid[1, 0], sharex=top)
    image = heat.imshow(
        ran / max(lanes, 1),
        aspect="auto",
        interpolation="nearest",
        vmin=0,
        vmax=1,
        cmap="viridis",
        extent=(0, max(last, 1), max(len(shown), 1) - 0.5, -0.5),
    )
    heat.set_yticks(range(len(shown)), [_label(program, label) for label in shown], family="monospace", fontsize=8)
    more = f"; {trace.left_out:,} more were not recorded" if trace.left_out else ""
    heat.set(xlabel=f"trip{more}")
    figure.colorbar(image, ax=heat, location="bottom", shrink=0.6, label="the part of all lanes that the block ran for")
    _bars(figure.add_subplot(grid[1, 1], sharey=heat), used, shown)
    return figure


def _figure() -> Any:
    """A figure that belongs to no window."""
    with needed("a picture of a run is drawn with matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(layout="constrained", figsize=(13, 7))
    FigureCanvasAgg(figure)
    return figure


def _shown(trace: Trace) -> list[str]:
    """The blocks that are drawn, in the order in which trips go through them."""
    ran: Counter[str] = Counter()
    for run in trace.block_runs:
        ran[run.block] += run.lanes
    most = {label for label, _ in ran.most_common(BLOCKS)}
    return [label for label in ran if label in most]


def _over_time(trace: Trace, shown: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of lanes for which each block ran, `[blocks, columns]`, and that had not ended, `[columns]`."""
    trips = max(1, trace.trips - trace.left_out)
    ran, live = np.zeros([len(shown), trips]), np.zeros([trips])
    rows = {label: row for row, label in enumerate(shown)}
    for run in trace.block_runs:
        live[run.trip - 1] = run.ran + run.waiting
        if run.block in rows:
            ran[rows[run.block], run.trip - 1] = run.ran
    if trips <= COLUMNS:
        return ran, live
    starts = np.linspace(0, trips, COLUMNS, endpoint=False).astype(int)
    counts = np.diff([*starts, trips])
    return np.add.reduceat(ran, starts, axis=1) / counts, np.add.reduceat(live, starts) / counts


def _label(program: Program, label: str) -> str:
    """A block's label with the source line that it begins at."""
    block = next(block for block in program.blocks if block.label == label)
    span: Span | None = block.span or next(iter(machine.spans(program, block)), None)
    if span is None:
        return label
    text = formatting.line_text(span.file, span.line).strip().replace("$", r"\$")
    return f"{text if len(text) <= TEXT else text[: TEXT - 2] + '..'}  {span.line}  {label}"


def _bars(axes: Any, used: Utilization, shown: Sequence[str]) -> None:
    """The rows that each block computed, those of use in a darker colour."""
    executed = [used.executed[label] for label in shown]
    active = [used.active[label] for label in shown]
    axes.barh(range(len(shown)), executed, color="silver", label="computed")
    bars = axes.barh(range(len(shown)), active, color="tab:blue", label="of use")
    parts = [f" {used.by_block[label]:.0%}" if label in used.by_block else "" for label in shown]
    axes.bar_label(bars, parts, fontsize=8)
    axes.tick_params(labelleft=False)
    axes.set(xlabel="rows", title=f"{used.overall:.0%} of the rows of use")
    axes.legend(fontsize=8)


Column = list[str]
"""The entries of one lane's stack as text, the top last."""


def stacks_picture(standing: Standing, title: str) -> Any:
    """A figure of the lanes' program counters and stacks, one lane beside the other; PCB564 without matplotlib.

    Lanes that wait at the same block have the same colour. The frames of a host's stack are rows above them.
    """
    figure = _figure()
    rows = columns_of(standing)
    lanes = max((len(columns) for columns in rows.values()), default=0)
    letters = max((len(text) for columns in rows.values() for column in columns for text in column), default=1)
    heights = {name: max(1, *map(len, columns), 1) for name, columns in rows.items()}
    figure.set_size_inches(
        2.2 + max(lanes, 1) * max(0.5, 0.1 * letters), 1.0 + 0.3 * (sum(heights.values()) + len(rows))
    )
    axes = figure.add_subplot()
    colors: dict[str, str] = {}
    bottom, places = 0.0, {}
    for name, columns in reversed(rows.items()):
        places[name] = bottom + heights[name] / 2
        for lane, column in enumerate(columns):
            for entry, text in enumerate(column):
                is_top = entry == len(column) - 1
                color = "lightsteelblue" if is_top else "whitesmoke"
                if name == COUNTER and is_top:
                    color = colors.setdefault(text, f"C{len(colors) % 10}")
                if name == FRAMES:
                    color = "tab:olive" if text else "white"
                box = {"facecolor": color, "edgecolor": "grey", "linewidth": 0.6, "alpha": 0.7}
                axes.bar(lane, 0.9, width=0.9, bottom=bottom + entry, **box)
                axes.text(lane, bottom + entry + 0.45, text, ha="center", va="center", family="monospace", fontsize=8)
        bottom += heights[name] + 0.7
    axes.set_yticks([*places.values()], [*places], family="monospace", fontsize=8)
    axes.set_xticks(range(lanes), [f"lane {lane}" for lane in range(lanes)], fontsize=8)
    axes.set(title=title, xlim=(-0.6, max(lanes, 1) - 0.4), ylim=(-0.3, max(bottom, 1)))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def columns_of(standing: Standing) -> dict[str, list[Column]]:
    """The rows of a picture of stacks: by name, the entries of each lane that is drawn."""
    layout, state = standing.layout, {key: np.asarray(array) for key, array in standing.state.items()}
    counters = state["pc"][:LANES]
    lanes, live = range(len(counters)), counters <= layout.finish
    labels = {**dict(enumerate(block.label for block in layout.program.blocks)), layout.start: "start"}
    labels |= {layout.finish: "end", layout.free: "end"}
    rows: dict[str, list[Column]] = {}
    if standing.frames:
        rows[FRAMES] = [["*" if frame[lane] else "" for frame in standing.frames[-ENTRIES:]] for lane in lanes]
    none = np.zeros(0, np.int32)
    calls = [state["calls"][lane, : state["depth"][lane]] if layout.has_calls else none for lane in lanes]
    rows[COUNTER] = [
        _newest([*(labels[int(call)] for call in calls[lane] if live[lane]), labels.get(int(counters[lane]), "failed")])
        for lane in lanes
    ]
    records = {name for site in layout.program.faults if site.status is LaneStatus.OK for name in site.arguments}
    for name, storage in layout.program.storage.items():
        if storage != "example" and name not in records:  # not what `pcbatch.debug` keeps
            rows[name] = [_newest(_entries(layout, state, name, lane)) if live[lane] else [] for lane in lanes]
    return rows


def _entries(layout: Layout, state: Mapping[str, np.ndarray], name: str, lane: int) -> Column:
    """The values of a variable of a lane, the top last."""
    tops, stacks, type_ = layout.tops(name), layout.stacks(name), layout.program.types[name]
    below = int(state[layout.pointer(name)][lane]) + (not tops) if stacks else 0
    found = [[state[key][lane, entry] for key in stacks] for entry in range(below)]
    found += [[state[key][lane] for key in tops]] if tops else []
    return [
        written(values.pack(type_, [*map(np.asarray, entry)])).replace("\n", "")[:LETTERS].replace("$", r"\$")
        for entry in found
    ]


def _newest(column: Column) -> Column:
    """The newest entries, and a mark where there are more below."""
    return column if len(column) <= ENTRIES else [MORE, *column[1 - ENTRIES :]]
