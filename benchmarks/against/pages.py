"""Draws the figures of a run into the pages that speak of cheap code, between `<!-- drawn: X -->` and `<!-- end -->`.

    python -m benchmarks.against.pages [docs/figures/cheap-code.json]

`python -m benchmarks.against --page` writes that file, and then does this, too. A test compares pages and file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.against import report, scaling
from benchmarks.against.crew import Clock, Figures
from benchmarks.against.report import Table
from benchmarks.against.scaling import Point
from benchmarks.conversation import ROOT
from benchmarks.figures.pages import paragraph, points

FILE = ROOT / "docs" / "figures" / "cheap-code.json"
PAGES = tuple(ROOT / "docs" / name for name in ("cheap-code.md", "when.md"))
MARKED = re.compile(r"(<!-- drawn: (.*?) -->\n).*?(<!-- end -->)", re.DOTALL)
EIGHT, RECURSIVE = "eight tasks", "recursions"
USUAL = 16384
"""The most lanes of the short tables."""
VECTORS = ("vmap", "vmap, one loop", "lax.map", "vectorized_map", "masked")
LOOPS = ("numba", "C", "numpy", "python")


@dataclass(frozen=True)
class Found:
    """The figures of a run: where they come from, tables by number of lanes and title, and how calls scale."""

    origin: str
    tables: Mapping[str, Mapping[int, Table]]
    scaling: Mapping[str, Mapping[int, Point]]


def read(path: Path = FILE) -> Found:
    """The figures of a file."""
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"]
    tables = {
        title: {
            int(lanes): {task: {who: Figures(**each) for who, each in cell.items()} for task, cell in table.items()}
            for lanes, table in by_lanes.items()
        }
        for title, by_lanes in figures["tables"].items()
    }
    scaled = {
        task: {int(lanes): _point(point) for lanes, point in by_lanes.items()}
        for task, by_lanes in figures["scaling"].items()
    }
    return Found(figures["origin"], tables, scaled)


def _point(point: Mapping[str, Any]) -> Point:
    return Point(**{**point, "one": Figures(**point["one"]), "cores": Figures(**point["cores"])})


def page(found: Found) -> list[str]:
    """All tables of a run as Markdown, as `--markdown` writes them."""
    said = []
    for title, tables in found.tables.items():
        if any(tables.values()):
            said += [f"## The {title}", "", *everything(title, found), ""]
    return [*said, "## Scaling", "", *scaled(found)] if found.scaling else said


def everything(title: str, found: Found) -> list[str]:
    """All tables of some tasks."""
    tables = {lanes: table for lanes, table in found.tables[title].items() if table}
    said = [*report.overview(tables), "", *report.overview(tables, "cpu")]
    for lanes, table in tables.items():
        said += ["", f"### {report.heading(lanes).capitalize()}, {title}", "", *report.markdown(table)]
    said += ["", f"### Seconds of first calls, {title}", "", *report.firsts(tables)]
    missing = report.failures(tables)
    return [*said, "", f"### Missing, {title}", "", *(f"- {each}" for each in missing)] if missing else said


def scaled(found: Found) -> list[str]:
    """The tables of nanoseconds a step, of bytes a lane and of what two cores gain."""
    return [
        "Nanoseconds of CPU time for a step, on one core:",
        "",
        *scaling.flatness(found.scaling),
        "",
        "Bytes of memory for each lane, results included, where a call takes at least a megabyte:",
        "",
        *scaling.memory(found.scaling),
        "",
        f"One core's time over that of all, from {1e3 * scaling.WORTH:g} ms of work on:",
        "",
        *scaling.gains(found.scaling),
    ]


def _means(title: str, names: tuple[str, ...], clock: Clock, found: Found) -> list[str]:
    return report.means(_usual(title, found), names, clock)


def _usual(title: str, found: Found) -> Mapping[int, Table]:
    return {lanes: table for lanes, table in found.tables[title].items() if lanes <= USUAL}


def _losses(found: Found) -> list[str]:
    return points(report.losses(found.tables[EIGHT])).splitlines()


DRAWINGS: dict[str, Callable[[Found], list[str]]] = {
    "origin": lambda found: paragraph(found.origin).splitlines(),
    "losses": _losses,
    EIGHT: partial(everything, EIGHT),
    RECURSIVE: partial(everything, RECURSIVE),
    "scaling": scaled,
    "vectors": partial(_means, EIGHT, VECTORS, "seconds"),
    "loops": partial(_means, EIGHT, LOOPS, "seconds"),
    "loops, CPU time": partial(_means, EIGHT, LOOPS, "cpu"),
    "machine": partial(_means, RECURSIVE, ("tfp",), "seconds"),
    "first calls": lambda found: report.firsts(_usual(EIGHT, found), ("pcbatch", "vmap", "numba", "C")),
}
"""What may stand between the marks of a page, by name."""


def drawn(text: str, found: Found) -> str:
    """A page with these figures."""
    return MARKED.sub(lambda marked: f"{marked[1]}{chr(10).join(DRAWINGS[marked[2]](found))}\n{marked[3]}", text)


def draw(found: Found) -> None:
    """Draw figures into the pages."""
    for path in PAGES:
        path.write_text(drawn(path.read_text(encoding="utf-8"), found), encoding="utf-8")
        print(f"drew {path.relative_to(ROOT)}")


def main() -> None:
    """Draw a file's figures."""
    draw(read(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE))


if __name__ == "__main__":
    main()
