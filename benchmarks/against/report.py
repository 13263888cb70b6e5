"""The tables: how many times as long as a contestant pcbatch takes, so that above 1 it is slower."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from benchmarks.against.crew import CONTESTANTS, OURS, Cell, Clock, Figures
from benchmarks.harness import table as drawn

Table = Mapping[str, Cell]
"""Cells by task, at one number of lanes."""
CLOCKS: dict[Clock, str] = {"seconds": "time", "cpu": "CPU time"}


def line(task: str, cell: Cell) -> str:
    """Milliseconds of each contestant and of the CPU, first call in seconds in brackets, or why there are none."""
    return f"{task:>14}  " + "   ".join(f"{name} {_shown(figures)}" for name, figures in cell.items())


def _shown(figures: Figures) -> str:
    seconds, cpu = figures.median(), figures.median("cpu")
    if seconds is None or cpu is None:
        return f"-- ({figures.failure})"
    first = f"{figures.first:.2g}" if figures.first is not None else "?"
    return f"{digits(1e3 * seconds)}/{digits(1e3 * cpu)} [{first}]"


def ratios(table: Table, name: str, clock: Clock = "seconds", *, best: bool = False) -> dict[str, float]:
    """By task: how many times as long pcbatch takes as the contestant, where both were timed; by medians or best."""
    found = {}
    for task, cell in table.items():
        pair = [cell.get(each, Figures()) for each in (OURS, name)]
        ours, theirs = (each.best(clock) if best else each.median(clock) for each in pair)
        if ours and theirs:
            found[task] = ours / theirs
    return found


def mean(values: Iterable[float]) -> float:
    """The geometric mean."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def summary(table: Table) -> list[str]:
    """Of each contestant: pcbatch's time over its, in the geometric mean, and the worst task."""
    said = []
    for name in names_in([table])[1:]:
        if found := ratios(table, name):
            worst = max(found, key=lambda task: found[task])
            cpu, best, least = (
                digits(mean(ratios(table, name, clock, best=shortest).values()))
                for clock, shortest in (("cpu", False), ("seconds", True), ("cpu", True))
            )
            said.append(
                f"pcbatch's time over that of {name}: {digits(mean(found.values()))} in the geometric mean of "
                f"{len(found)}, at worst {digits(found[worst])} ({spaced(worst)}); CPU time {cpu}; "
                f"of the best calls {best}, CPU time {least}"
            )
    return said


def overview(tables: Mapping[int, Table], clock: Clock = "seconds") -> list[str]:
    """A table for a page: pcbatch's time over each contestant's, the geometric mean and the worst task."""
    rows = []
    for name in names_in(tables.values())[1:]:
        shown = []
        for table in tables.values():
            found = ratios(table, name, clock)
            worst = max(found, key=lambda task: found[task], default="")
            shown.append(f"{_marked(mean(found.values()))}; {spaced(worst)} {digits(found[worst])}" if found else "")
        rows.append([name, *shown])
    return drawn([f"pcbatch's {CLOCKS[clock]} over that of", *map(heading, tables)], rows)


def means(tables: Mapping[int, Table], names: Iterable[str], clock: Clock = "seconds") -> list[str]:
    """A table for a page: pcbatch's time over that of the contestants that were measured, as geometric means."""
    rows = []
    for name in names:
        found = [ratios(table, name, clock) for table in tables.values()]
        if any(found):
            rows.append([name, *(_marked(mean(each.values())) if each else "" for each in found)])
    return drawn([f"pcbatch's {CLOCKS[clock]} over that of", *map(heading, tables)], rows)


def markdown(table: Table, clock: Clock = "seconds") -> list[str]:
    """A table for a page: pcbatch in milliseconds, and how many times as long as each of the others it takes."""
    others = names_in([table])[1:]
    by_name = {name: ratios(table, name, clock) for name in others}
    rows = []
    for task, cell in table.items():
        ours = cell[OURS].median(clock) if OURS in cell else None
        missing = {name: "--" if name in cell else "" for name in others}
        shown = [_marked(by_name[name][task]) if task in by_name[name] else missing[name] for name in others]
        rows.append([spaced(task), digits(1e3 * ours) if ours else "--", *shown])
    last = [_marked(mean(found.values())) if found else "" for found in by_name.values()]
    return drawn(["task", "pcbatch, ms", *others], [*rows, ["*geometric mean*", "", *last]])


def firsts(tables: Mapping[int, Table], only: Iterable[str] = ()) -> list[str]:
    """A table for a page: seconds of the first call of each contestant, or of some, as medians over the tasks."""
    present = names_in(tables.values())
    names = [name for name in only if name in present] or present
    rows = []
    for lanes, table in tables.items():
        shown = []
        for name in names:
            found = sorted(cell[name].first for cell in table.values() if name in cell and cell[name].first is not None)
            shown.append(digits(found[len(found) // 2]) if found else "")
        rows.append([f"{lanes:,}", *shown])
    return drawn(["lanes", *names], rows)


def losses(tables: Mapping[int, Table]) -> list[str]:
    """Who is faster than pcbatch in the geometric mean, by number of lanes, the fastest first."""
    said = []
    for lanes, table in tables.items():
        found = {name: mean(all_of_them.values()) for name in peers(table) if (all_of_them := ratios(table, name))}
        ahead = sorted((name for name in found if found[name] > 1), key=lambda name: -found[name])
        said.append(f"{heading(lanes)}: " + (", ".join(f"{each} {digits(found[each])}" for each in ahead) or "nobody"))
    return said


def failures(tables: Mapping[int, Table]) -> list[str]:
    """Every figure that is missing, with its reason."""
    return [
        f"{lanes:,} lanes, {task}, {name}: {figures.failure}"
        for lanes, table in tables.items()
        for task, cell in table.items()
        for name, figures in cell.items()
        if figures.failure
    ]


def names_in(tables: Iterable[Table]) -> list[str]:
    """The contestants of some tables, in their order."""
    present = {name for table in tables for cell in table.values() for name in cell}
    return [name for name in CONTESTANTS if name in present]


def peers(table: Table) -> list[str]:
    """The contestants of a table that are not pcbatch in another way."""
    return [name for name in names_in([table]) if CONTESTANTS[name].script != CONTESTANTS[OURS].script]


def heading(lanes: int) -> str:
    """So many lanes, in words."""
    return f"{lanes:,} {'lane' if lanes == 1 else 'lanes'}"


def spaced(task: str) -> str:
    """A task's name in a text."""
    return task.replace("_", " ")


def digits(value: float) -> str:
    """Two digits, no exponent."""
    return f"{value:.2g}" if value < 100 else f"{float(f'{value:.2g}'):,.0f}"


def _marked(ratio: float) -> str:
    """A ratio, bold where pcbatch is slower."""
    return f"**{digits(ratio)}**" if ratio > 1 else digits(ratio)
