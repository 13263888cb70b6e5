"""`python -m tools.tables`: draw tables of the pages of figures into other pages, so that a figure stands once.

A page says between two comments which table it shows, and which of its columns and rows:

    <!-- table: figures/trees.md#small-trees-a-binary-treelstm-of-128-leaves columns: 1 example; 64 examples -->
    <!-- end -->

The page of figures was written by a benchmark. `columns:` and `rows:` may be left away; the first column is always
there, and rows are chosen by their beginning.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
MARKED = re.compile(
    r"(<!-- table: (?P<path>\S+?)#(?P<anchor>\S+)(?: columns: (?P<columns>.*?))?(?: rows: (?P<rows>.*?))? -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.DOTALL,
)


def anchor(title: str) -> str:
    """A heading as a link names it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def table(page: Path, name: str) -> list[list[str]]:
    """The first table under a heading, as cells; the second row is the line under the heads."""
    parts = re.split(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if anchor(title) == name:
            lines = re.search(r"(?:^\|.*\n)+", body, re.MULTILINE)[0].splitlines()
            return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    raise LookupError(f"{page} has no heading #{name}")


def chosen(cells: list[list[str]], columns: str | None, rows: str | None) -> list[list[str]]:
    """The cells of some columns and rows."""
    head, _, *body = cells
    places = [0, *(head.index(name) for name in columns.split("; "))] if columns else range(len(head))
    wanted = tuple(rows.split("; ")) if rows else ("",)
    body = [row for row in body if row[0].startswith(wanted)]
    return [[row[place] for place in places] for row in (head, ["---"] * len(head), *body)]


def drawn(page: Path) -> str:
    """A page with its tables."""

    def filled(match: re.Match[str]) -> str:
        source = Path(os.path.normpath(page.parent / match["path"]))
        shown = chosen(table(source, match["anchor"]), match["columns"], match["rows"])
        lines = "".join(f"| {' | '.join(row)} |\n" for row in shown)
        return f"{match[1]}{lines}{match['end']}"

    return MARKED.sub(filled, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(drawn(each), encoding="utf-8")
