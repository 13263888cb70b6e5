"""The table of what is executed in a trip, for docs/gpu.md, and its figures beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tools.gpu_thunks.compiled import Compiled
from tools.gpu_thunks.titles import TITLES

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "gpu.md"
FIGURES = ROOT / "docs" / "figures" / "gpu_thunks.json"
MARKED = re.compile(r"(<!-- drawn: gpu thunks -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = (
    "program",
    "flags",
    "kernels",
    "copies",
    "conditionals",
    "loops",
    "looks per 16 trips",
    "KiB moved",
    "of state and gradient",
    "largest copy, KiB",
)

Row = dict[str, float]
Figures = dict[str, list[Row]]
"""By program and flags what is executed in a trip of each of its loops."""


def rows(programs: Sequence[Compiled]) -> list[Row]:
    """The figures of all loops of these programs, one trip of each."""
    found = []
    for gradient, trip in ((each.gradient, trip) for each in programs for trip in each.trips):
        counts = trip.counts
        found.append(
            {
                "kernels": counts.kernels,
                "copies": counts.copies,
                "conditionals": counts.conditionals,
                "loops": counts.loops,
                "looks": 16 * counts.looks,
                "bytes": counts.bytes,
                "state": trip.state,
                "gradient": gradient,
                "largest copy": counts.largest_copy,
            }
        )
    return found


def table(figures: Figures) -> str:
    """The figures as a table of Markdown."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    for key, found in figures.items():
        name, flags = key.split(": ", 1)
        for number, row in enumerate(found):
            which = f", loop {number + 1}" if len(found) > 1 else ""
            cells = [f"{row[each]:.3g}" for each in ("kernels", "copies", "conditionals", "loops", "looks")]
            sizes = [f"{row['bytes'] / 1024:,.0f}", f"{share(row):.2f}", f"{row['largest copy'] / 1024:,.1f}"]
            lines.append(f"| {' | '.join([TITLES[name] + which, flags, *cells, *sizes])} |")
    return "\n".join(lines)


def share(row: Row) -> float:
    """The bytes that a trip moves, as a share of the state, read and written once, and of what the gradient moves."""
    return row["bytes"] / (2 * row["state"] + row["gradient"])


def dearest(programs: Sequence[Compiled], number: int) -> str:
    """The kernels and copies of a trip of each loop that move most, with bytes and types."""
    trips = (trip for program in programs for trip in program.trips)
    lines = [[f"{each.bytes:12,.0f} {each.kind} {each.name} {each.type}" for each in trip.moved] for trip in trips]
    return "\n\n".join("\n".join(each[:number]) for each in lines)


def drawn(text: str, figures: Figures) -> str:
    """The page with its table."""
    return MARKED.sub(lambda found: f"{found[1]}{table(figures)}\n{found[2]}", text)


def write(figures: Figures) -> None:
    """Write the figures."""
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def read() -> Figures:
    """The figures as they were written."""
    found: Figures = json.loads(FIGURES.read_text("utf-8"))
    return found
