"""Pictures of a run: which blocks ran for how many lanes, trip by trip; and all stacks after a step.

Drawn with matplotlib, which is imported when it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pcbatch.errors import Span, needed
from pcbatch.ir import machine, values
from pcbatch.ir.machine import LaneStatus, Program
from pcbatch.runtime.machine.outcome import Standing
from pcbatch.runtime.machine.state import Layout
from pcbatch.runtime.report import formatting
from pcbatch.runtime.report.formatting import written
from pcbatch.runtime.report.trace import Trace, Utilization

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
