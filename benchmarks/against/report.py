"""The tables: milliseconds of a task's contestants, ratios, and what a run says of pcbatch."""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchmarks.against.crew import CONTESTANTS, Cell, Figures

Table = Mapping[str, Cell]
"""Cells by task, at one number of lanes."""


def line(task: str, cell: Cell) -> str:
    """Milliseconds of each contestant, first call in seconds in brackets, or why there are none."""
    return f"{task:>14}  " + "   ".join(f"{name} {_shown(figures)}" for name, figures in cell.items())


def _shown(figures: Figures) -> str:
    if figures.best is None:
        return f"-- ({figures.failure})"
    first = f"{figures.first:.2g}" if figures.first is not None else "?"
    return f"{_digits(1e3 * figures.best)} [{first}]"


def ratios(table: Table, name: str) -> dict[str, float]:
    """By task: how many times as long pcbatch takes as the contestant; only where both were timed."""
    found = {}
    for task, cell in table.items():
        ours, theirs = (cell[each].best if each in cell else None for each in ("pcbatch", name))
        if ours and theirs:
            found[task] = ours / theirs
    return found


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(table: Table) -> list[str]:
    """Of each contestant: pcbatch's time over its, in the geometric mean, and the worst task."""
    said = []
    for name in _names(table)[1:]:
        if found := ratios(table, name):
            worst = max(found, key=lambda task: found[task])
            said.append(
                f"pcbatch's time over that of {name}: {_digits(mean(list(found.values())))} in the geometric mean of "
                f"{len(found)}, at worst {_digits(found[worst])} ({worst.replace('_', ' ')})"
            )
    return said


def overview(tables: Mapping[int, Table]) -> list[str]:
    """A table for a page: pcbatch's time over each contestant's, the geometric mean and the worst task."""
    names = list(dict.fromkeys(name for table in tables.values() for name in _names(table)))
    heads = [f"{lanes:,} {'lane' if lanes == 1 else 'lanes'}" for lanes in tables]
    rows = [f"| pcbatch's time over that of | {' | '.join(heads)} |", f"|{'---|' * (len(tables) + 1)}"]
    for name in names[1:]:
        shown = []
        for table in tables.values():
            found = ratios(table, name)
            if found:
                worst = max(found, key=lambda task: found[task])
                average = _digits(mean(list(found.values())))
                shown.append(f"**{average}**; {worst.replace('_', ' ')} {_digits(found[worst])}")
            else:
                shown.append("")
        rows.append(f"| {name} | {' | '.join(shown)} |")
    return rows


def markdown(table: Table) -> list[str]:
    """A table for a page: pcbatch in milliseconds, and how many times as long the others take: below 1 they win."""
    names = _names(table)
    others = names[1:]
    rows = [f"| task | pcbatch, ms | {' | '.join(others)} |", f"|{'---|' * (len(others) + 2)}"]
    for task, cell in table.items():
        ours = cell["pcbatch"].best if "pcbatch" in cell else None
        shown = []
        for name in others:
            theirs = cell[name].best if name in cell else None
            missing = "--" if name in cell else ""
            shown.append(_digits(theirs / ours) if ours and theirs else missing)
        named = task.replace("_", " ")
        rows.append(f"| {named} | {_digits(1e3 * ours) if ours else '--'} | {' | '.join(shown)} |")
    means = [mean(list(found.values())) if (found := ratios(table, name)) else None for name in others]
    shown = [_digits(1 / each) if each else "" for each in means]
    return [*rows, f"| *geometric mean* | | {' | '.join(shown)} |"]


def firsts(tables: Mapping[int, Table]) -> list[str]:
    """A table for a page: seconds of the first call of each contestant, as medians over the tasks."""
    names = list(dict.fromkeys(name for table in tables.values() for name in _names(table)))
    rows = [f"| lanes | {' | '.join(names)} |", f"|{'---|' * (len(names) + 1)}"]
    for lanes, table in tables.items():
        shown = []
        for name in names:
            found = sorted(cell[name].first for cell in table.values() if name in cell and cell[name].first is not None)
            shown.append(_digits(found[len(found) // 2]) if found else "")
        rows.append(f"| {lanes:,} | {' | '.join(shown)} |")
    return rows


def failures(tables: Mapping[int, Table]) -> list[str]:
    """Every figure that is missing, with its reason."""
    return [
        f"{lanes:,} lanes, {task}, {name}: {figures.failure}"
        for lanes, table in tables.items()
        for task, cell in table.items()
        for name, figures in cell.items()
        if figures.failure
    ]


def _names(table: Table) -> list[str]:
    return [name for name in CONTESTANTS if any(name in cell for cell in table.values())]


def _digits(value: float) -> str:
    """Two digits, no exponent."""
    return f"{value:.2g}" if value < 100 else f"{float(f'{value:.2g}'):,.0f}"
