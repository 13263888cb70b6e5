"""The cost of a batch in each of the ways to run it, block by block, and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pcbatch.runtime.report import formatting

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The names of columns, and rows."""
TEXT = 60
"""The number of characters of a source line that stand beside its block."""
LEGEND = (
    "launches: how often a block ran, each time for all lanes that waited at it; rows: computed in all; of use: those"
    "\nof lanes that took part; seconds: the share of the call that its estimated work has. The longest lane has to run"
    "\nthe block so often by itself. Batching on the fly builds graphs of what lanes run, as Fold and DyNet do, and"
    "\nlaunches them by depth or by agenda; its seconds are those of building and scheduling, too."
)


@dataclass(frozen=True)
class Figures:
    """The figures of one block in one way to run: launches, rows computed, rows of lanes that took part, seconds."""

    launches: int
    rows: int
    active: int
    seconds: float


@dataclass(frozen=True)
class ExecutionCost:
    """One way to run the batch: a call's seconds, the part of all rows that was of use, expensive blocks by label."""

    name: str
    seconds: float
    utilization: float
    blocks: Mapping[str, Figures]


@dataclass(frozen=True)
class Expensive:
    """A block with expensive rows: its place, and properties that do not depend on the way of running.

    `row` is the estimated work of a row; `longest` how often the lane runs it that runs it most; `by_depth` and
    `by_agenda` the launches that batching on the fly makes.
    """

    label: str
    function: str
    file: str
    line: int
    row: float
    longest: int
    by_depth: int
    by_agenda: int

    @property
    def text(self) -> str:
        """Its source line, shortened."""
        text = formatting.line_text(self.file, self.line).strip()
        return text if len(text) <= TEXT else f"{text[: TEXT - 2]}.."


@dataclass(frozen=True)
class Explanation:
    """The ways in which a batch runs; printed, tables and advice.

    `ways` are the ways that were run, the usual one first; `form` says in which form that is; `not_native` why it is
    not native code, "" where it is or where lanes never part; `blocks` the blocks with expensive rows; `advice` are
    sentences, the most important first; `calls` say which calls that follow each other are not made at the same time,
    and why.
    """

    name: str
    lanes: int
    form: str
    ways: Sequence[ExecutionCost]
    blocks: Sequence[Expensive]
    advice: Sequence[str] = field(default_factory=tuple)
    calls: Sequence[str] = field(default_factory=tuple)
    not_native: str = ""

    def __str__(self) -> str:
        said = [self._title, "", *formatting.columns(*self._overall())]
        if self.not_native:
            said += ["", self.not_native]
        for block in self.blocks:
            said += ["", self._heading(block), *formatting.columns(*self._of_block(block))]
        if self.blocks:
            said += ["", LEGEND]
        if self.calls:
            said += ["", *self.calls]
        return "\n".join([*said, "", *(f"- {each}" for each in self.advice)])

    def _repr_html_(self) -> str:
        """The same as tables, in notebooks."""
        legend = LEGEND.replace("\n", " ").split("; ")
        tables = [formatting.figures(self._title, *self._overall(), [self.not_native] if self.not_native else [])]
        for block in self.blocks:
            last = block is self.blocks[-1]
            tables.append(formatting.figures(self._heading(block), *self._of_block(block), legend if last else []))
        return "".join([*tables, formatting.points([*self.calls, *self.advice])])

    @property
    def _title(self) -> str:
        return f"{self.name}, {self.lanes} lane{'' if self.lanes == 1 else 's'}, {self.form}"

    def _overall(self) -> Table:
        header = ("seconds", "rows of use", "")
        return header, [(f"{way.seconds:.3g}", f"{way.utilization:.0%}", way.name) for way in self.ways]

    def _heading(self, block: Expensive) -> str:
        return f"{block.label} of {block.function}, {formatting.file_name(block.file)}:{block.line}: {block.text}"

    def _of_block(self, block: Expensive) -> Table:
        header = ("launches", "rows", "of use", "seconds", "")
        rows: list[tuple[str, ...]] = [
            (f"{each.launches:,}", f"{each.rows:,}", _share(each), f"{each.seconds:.3g}", way.name)
            for way in self.ways
            if (each := way.blocks.get(block.label)) is not None
        ]
        rows.append((f"{block.longest:,}", "", "", "", "the longest lane"))
        return header, rows

    def __repr__(self) -> str:
        return (
            f"<pcbatch.Explanation of {self._title}; {len(self.blocks)} expensive block{'s'[: len(self.blocks) != 1]}>"
        )


def _share(figures: Figures) -> str:
    return f"{figures.active / figures.rows:.0%}" if figures.rows else ""
