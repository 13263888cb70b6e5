"""The cost of a batch in each of the ways to run it, block by block, and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pcbatch.runtime.report import listing

TEXT = 60
"""The number of characters of a source line that stand beside its block."""
LEGEND = (
    "launches: how often a block ran, each time for all lanes that waited at it; rows: computed in all; of use: those"
    "\nof lanes that took part; seconds: the share of the call that its estimated work has. The longest lane has to run"
    "\nthe block so often by itself. Fold and DyNet build a graph of the whole batch first, which must not depend on"
    "\nresults; by depth and by agenda they would launch the block so often."
)


@dataclass(frozen=True)
class Figures:
    """One block in one way to run: launches, rows that were computed, rows of lanes that took part, seconds."""

    launches: int
    rows: int
    active: int
    seconds: float


@dataclass(frozen=True)
class Way:
    """One way to run the batch: a call's seconds, the part of all rows that was of use, expensive blocks by label."""

    name: str
    seconds: float
    utilization: float
    blocks: Mapping[str, Figures]


@dataclass(frozen=True)
class Expensive:
    """A block with expensive rows: where it stands, what is to be known of it whatever runs it.

    `row` is the estimated work of a row; `longest` how often the lane runs it that runs it most; `by_depth` and
    `by_agenda` the launches that batching on the fly would make.
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
        text = listing.line_text(self.file, self.line).strip()
        return text if len(text) <= TEXT else f"{text[: TEXT - 2]}.."


@dataclass(frozen=True)
class Explanation:
    """The ways in which a batch runs; printed, tables and advice.

    `ways` are the ways that were run, the usual one first; `blocks` the blocks with expensive rows; `forms` says in
    which form each way ran; `advice` are sentences, the most important first; `calls` say which
    calls that follow each other are not made at the same time, and why.
    """

    name: str
    lanes: int
    form: str
    ways: Sequence[Way]
    blocks: Sequence[Expensive]
    advice: Sequence[str] = field(default_factory=tuple)
    calls: Sequence[str] = field(default_factory=tuple)

    def __str__(self) -> str:
        lanes = f"{self.lanes} lane{'' if self.lanes == 1 else 's'}"
        said = [f"{self.name}, {lanes}, {self.form}", "", *self._overall()]
        for block in self.blocks:
            said += ["", *self._of_block(block)]
        if self.blocks:
            said += ["", LEGEND]
        if self.calls:
            said += ["", *self.calls]
        return "\n".join([*said, "", *(f"- {each}" for each in self.advice)])

    def _overall(self) -> list[str]:
        header = ("seconds", "rows of use", "")
        rows = [(f"{way.seconds:.3g}", f"{way.utilization:.0%}", way.name) for way in self.ways]
        return listing.table(header, rows)

    def _of_block(self, block: Expensive) -> list[str]:
        where = f"{listing.file_name(block.file)}:{block.line}: {block.text}"
        header = ("launches", "rows", "of use", "seconds", "")
        rows = [
            (f"{each.launches:,}", f"{each.rows:,}", _share(each), f"{each.seconds:.3g}", way.name)
            for way in self.ways
            if (each := way.blocks.get(block.label)) is not None
        ]
        rows += [
            (f"{count:,}", "", "", "", name)
            for name, count in (
                ("the longest lane", block.longest),
                ("Fold, by depth", block.by_depth),
                ("DyNet, by agenda", block.by_agenda),
            )
        ]
        return [f"{block.label} of {block.function}, {where}", *listing.table(header, rows)]

    def __repr__(self) -> str:
        return f"<pcbatch.Explanation of {self.name}: {self.lanes} lanes, {len(self.blocks)} expensive blocks>"


def _share(figures: Figures) -> str:
    return f"{figures.active / figures.rows:.0%}" if figures.rows else ""
