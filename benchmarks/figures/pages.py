"""Pages of figures in Markdown: tables, paragraphs and lists."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path("docs") / "figures"
WIDTH = 120


def table(heads: Sequence[str], rows: Mapping[str, Sequence[str]], corner: str = "") -> str:
    """A table: a line for each row, its name first."""
    lines = [f"| {corner} | {' | '.join(heads)} |", f"|{'---|' * (len(heads) + 1)}"]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join(lines)


def chains(number: int) -> str:
    """So many chains, in words."""
    return f"{number:,} chain" + ("" if number == 1 else "s")


def paragraph(text: str) -> str:
    """The text in lines of equal length."""
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def points(texts: Sequence[str]) -> str:
    """A list."""
    return "\n".join(
        textwrap.fill(
            " ".join(text.split()),
            WIDTH,
            initial_indent="- ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for text in texts
    )


def write(name: str, parts: Sequence[str], folder: Path) -> Path:
    """The page `name.md` of these parts, an empty line between each two."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text("\n\n".join(part.strip("\n") for part in parts) + "\n", encoding="utf-8")
    print(f"wrote {path}")
    return path


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
