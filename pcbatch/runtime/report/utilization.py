"""Utilisation of the lanes of a run: active lanes over computed rows, counted where blocks run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pcbatch.ir.analysis import source_locations
from pcbatch.ir.machine import Program

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
        file = source_locations.file_of(program, program.blocks[0].function)
        lines = {}
        for block in program.blocks:
            spans = [span for span in source_locations.spans(program, block) if span.file == file]
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
