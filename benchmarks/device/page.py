"""The tables of docs/gpu.md that a card's figures fill."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.device.plan import WAYS, Row

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "gpu.md"
FIGURES = ROOT / "docs" / "figures" / "device.json"
MARKED = re.compile(r"(<!-- drawn: device -->\n).*?(<!-- end -->)", re.DOTALL)
NOTHING = "No card has been asked yet."


def drawn(text: str, found: Mapping[str, Any] | None) -> str:
    """The page with its table."""
    return MARKED.sub(lambda mark: f"{mark[1]}{table(found) if found else NOTHING}\n{mark[2]}", text)


def table(found: Mapping[str, Any]) -> str:
    """The figures as a table of Markdown, in milliseconds, with how they were made."""
    ways = [*WAYS, "NumPyro"]
    rows: dict[tuple[str, int], dict[str, Row]] = {}
    for row in found["rows"]:
        rows.setdefault((row["program"], row["size"]), {})[row["way"]] = row
    lines = [f"| program | {' | '.join(ways)} |", f"|{'---|' * (1 + len(ways))}"]
    for (name, size), cells in sorted(rows.items()):
        shown = [_shown(cells[way]) if way in cells else "" for way in ways]
        lines.append(f"| {name}, {size:,} | {' | '.join(shown)} |")
    right = [name for name, said in found["right"].items() if not said]
    said = f"{len(right)} of {len(found['right'])} programs of the test suite were right on {found['card']}."
    missing = "; ".join(f"{name}: {why}" for name, why in found["missing"].items())
    parts = [said, found["origin"], *([f"Missing: {missing}."] if missing else [])]
    return "\n".join([" ".join(parts), "", *lines])


def _shown(row: Row) -> str:
    return f"{1e3 * row['seconds']:.3g} ({row['first']:.1f} s)"


def write(found: Mapping[str, Any]) -> None:
    """Write the figures, and the page."""
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(drawn(PAGE.read_text("utf-8"), found), encoding="utf-8")


def read() -> Mapping[str, Any] | None:
    """The figures as they were written; None where no card was asked."""
    return json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else None
