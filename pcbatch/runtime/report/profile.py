"""The work of a run, line by line of the user's source: counted by block, shown where the code of a block stands.

Everything is known of every run: the machine counts, for each block, how often it ran, for how many lanes and on how
many rows, whether anybody asks or not.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace

import numpy as np

from pcbatch.errors import Span
from pcbatch.ir import machine
from pcbatch.ir.machine import Program
from pcbatch.runtime.costs.estimate import line_costs
from pcbatch.runtime.machine.outcome import Outcome
from pcbatch.runtime.report import formatting
from pcbatch.runtime.report.trace import ratio

Place = tuple[str, int]
"""A file and a line."""
HEADER = ("runs", "lanes", "rows", "of use", "cost", "")
TAPED = ("runs", "lanes", "rows", "of use", "tape", "cost", "")
"""The same of a run that a gradient tape watched."""
LEGEND = (
    "runs: how often a block with a part of the line ran; lanes: how many took part on average; rows: computed in all;"
    "\nof use: of these rows, those of lanes that took part; cost: the line's share of the estimated work of all rows"
)

TAPE_LEGEND = (
    '\ntape: bytes that are kept of these rows for a gradient, or would be if not computed again (tape="replay")'
)


@dataclass(frozen=True)
class Counts:
    """Sums over blocks: how often they ran, for how many lanes in all, on how many rows, and the work of those rows.

    `cost` is in the unit of the static estimate: a multiply-add or an element (`runtime.costs`). `tape` is how many
    bytes a run that a gradient tape watched has written down.
    """

    runs: int = 0
    active: int = 0
    rows: int = 0
    cost: float = 0.0
    tape: int = 0

    def __add__(self, other: Counts) -> Counts:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Counts(*(ours + theirs for ours, theirs in pairs))

    @property
    def steps(self) -> int:
        """The old name of `runs`."""
        warnings.warn("Counts.steps is now Counts.runs", DeprecationWarning, stacklevel=2)
        return self.runs

    @property
    def lanes(self) -> float:
        """The mean number of lanes that took part when a block ran; 0 where none ran."""
        return self.active / self.runs if self.runs else 0.0

    @property
    def utilization(self) -> float:
        """The part of the rows that was of use; 1 where none was computed."""
        return ratio(self.active, self.rows)

    def cells(self, total: Counts) -> tuple[str, ...]:
        """The figures as a table shows them; `total` is of everything."""
        if not self.runs:
            return ("0", "", "0", "", *([""] if total.tape else []), "")
        figures = f"{self.runs:,}", f"{self.lanes:,.1f}", f"{self.rows:,}", f"{self.utilization:.0%}"
        tape = [f"{self.tape:,}"] if total.tape else []
        return (*figures, *tape, f"{ratio(self.cost, total.cost):.1%}")


Definition = tuple[str, str, range]
"""A function in a source file: the file, the function's name and its lines."""


@dataclass(frozen=True)
class Line:
    """A line on which statements or conditions begin, with the sums over the blocks that have a part of these."""

    file: str
    number: int
    counts: Counts

    @property
    def text(self) -> str:
        """The source line."""
        return formatting.line_text(self.file, self.number)


@dataclass(frozen=True)
class FunctionProfile:
    """A function of the user's: the sums over its blocks, and its lines that have code, in order."""

    name: str
    file: str
    counts: Counts
    lines: tuple[Line, ...]

    @property
    def heading(self) -> str:
        """Its name, and where it stands."""
        return f"{self.name}, {formatting.file_name(self.file)}" if self.file else self.name

    def source(self) -> Iterator[tuple[int | None, str, Counts | None]]:
        """All its lines: numbers, texts, and the counts of those that have code.

        Behind them come those of the helpers that are a part of it, each under a heading, which has no number.
        """
        counts: defaultdict[Definition, dict[int, Counts]] = defaultdict(dict)
        for line in self.lines:
            counts[(line.file, *formatting.definition(line.file, line.number))][line.number] = line.counts
        if not counts:
            return
        name = self.name.rpartition(".")[2]
        own = next((each for each in counts if each[:2] == (self.file, name)), next(iter(counts)))
        whole: defaultdict[Definition, dict[int, Counts]] = defaultdict(dict, {own: {}})
        for each, found in counts.items():
            around = [other for other in counts if _is_inside(each, other) and not _is_inside(own, other)]
            whole[max(around, key=lambda other: len(other[2]), default=each)] |= found
        for each, found in whole.items():
            file, of, extent = each
            if each != own:
                yield None, f"in {of}, {formatting.file_name(file)}" if of else f"in {formatting.file_name(file)}", None
                if _is_inside(own, each):
                    extent = range(min(found), max(found) + 1)
            for number in extent:
                yield number, formatting.line_text(file, number), found.get(number)


def _is_inside(inner: Definition, outer: Definition) -> bool:
    """Return whether a function stands in another one."""
    return inner != outer and inner[0] == outer[0] and inner[2][0] in outer[2] and inner[2][-1] in outer[2]


@dataclass(frozen=True)
class Profile:
    """A run by functions, the entry first, and lines; as text, each function's source with the figures beside it.

    `notes` say what else is to be known of some lines.
    """

    title: str
    functions: tuple[FunctionProfile, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, program: Program, outcome: Outcome, title: str) -> Profile:
        """The profile of a run of `program`; `title` says in a few words how it went."""
        totals: defaultdict[str, Counts] = defaultdict(Counts)
        lines: defaultdict[str, defaultdict[Place, Counts]] = defaultdict(lambda: defaultdict(Counts))
        for name, counts, by_line in _counted(program, outcome):
            totals[name] += counts
            for place, share in by_line.items():
                lines[name][place] += share
        return cls(
            f"{program.name}: {title}",
            tuple(
                FunctionProfile(
                    name,
                    machine.file_of(program, name),
                    counts,
                    tuple(Line(*place, share) for place, share in sorted(lines[name].items())),
                )
                for name, counts in totals.items()
            ),
            tuple(noted(*note) for note in outcome.notes),
        )

    @property
    def total(self) -> Counts:
        """The sums over all blocks."""
        return sum((function.counts for function in self.functions), Counts())

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines of all functions that have code."""
        return tuple(line for function in self.functions for line in function.lines)

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns."""
        return TAPED if self.total.tape else HEADER

    @property
    def legend(self) -> str:
        """The meaning of these figures, in words."""
        return LEGEND + (TAPE_LEGEND if self.total.tape else "")

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = []
        margin = max((len(str(line.number)) for line in self.lines), default=1)
        for function in self.functions:
            heading = f"{function.name}, {formatting.file_name(function.file)}" if function.file else function.name
            rows += [("",) * len(self.header), (*function.counts.cells(self.total), heading)]
            rows += self._source(function, margin)
        notes = ["", *self.notes] if self.notes else []
        return "\n".join([self.title, "", *formatting.columns(self.header, rows), "", self.legend, *notes])

    def _source(self, function: FunctionProfile, margin: int) -> list[tuple[str, ...]]:
        """The lines of a function, with figures where it has code."""
        rows = []
        for number, text, counts in function.source():
            cells = counts.cells(self.total) if counts is not None else ("",) * (len(self.header) - 1)
            rows.append((*cells, text if number is None else f"{number:>{margin}}  {text}"))
        return rows

    def _repr_html_(self) -> str:
        """The same as a table, in notebooks."""
        total, body = self.total, []
        for function in self.functions:
            head = f"{function.name}, {formatting.file_name(function.file)}" if function.file else function.name
            body.append(formatting.row(function.counts.cells(total), head, strong=True))
            for number, text, counts in function.source():
                cells = counts.cells(total) if counts is not None else ("",) * (len(self.header) - 1)
                share = ratio(counts.cost, total.cost) if counts is not None else 0.0
                body.append(formatting.row(cells, text if number is None else f"{number}  {text}", share=share))
        return formatting.table(
            self.title, self.header, body, [*self.legend.replace("\n", " ").split("; "), *self.notes]
        )

    def __repr__(self) -> str:
        return f"<pcbatch.Profile of {self.title}>"


def noted(span: Span | None, text: str) -> str:
    """A note with its place."""
    return text if span is None else f"{formatting.file_name(span.file)}:{span.line}: {text}"


def _counted(program: Program, outcome: Outcome) -> Iterator[tuple[str, Counts, dict[Place, Counts]]]:
    """Each block's function, its counts, and those of each line of which it has a part."""
    counted = [np.asarray(each).tolist() for each in (outcome.executions, outcome.active, outcome.rows)]
    costs = line_costs(program if outcome.code is None else outcome.code(), outcome.backend)
    tapes = [outcome.tape.get(number, {}) for number, _ in enumerate(program.blocks)]
    for block, runs, active, rows, by_span, kept in zip(program.blocks, *counted, costs, tapes, strict=True):
        counts = Counts(runs, active, rows, sum(by_span.values()) * rows, sum(kept.values()) * active)
        work: defaultdict[Place, float] = defaultdict(float)
        bytes_kept: defaultdict[Place, int] = defaultdict(int)
        for span, cost in by_span.items():
            work[span.file, span.line] += cost * rows
        for span, each in kept.items():
            place = span.file, span.line
            # Lines are of the blocks that do something on them, whether a tape watches or not.
            bytes_kept[place if place in work else next(iter(work), place)] += each * active
        found = dict.fromkeys([*work, *bytes_kept])
        yield (
            block.function,
            counts,
            {place: replace(counts, cost=work[place], tape=bytes_kept[place]) for place in found},
        )
