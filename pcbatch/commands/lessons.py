"""Sections of docs/errors.md, as `pcbatch help PCB101` prints them."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from pcbatch.errors import UsageError

CODE = re.compile(r"(?:PCB)?(\d{3})", re.IGNORECASE)


def page() -> Path:
    """The page: in the package, where that is installed, else beside it."""
    package = Path(__file__).parents[1]
    places = package / "errors.md", package.parent / "docs" / "errors.md"
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UsageError("PCB578", "this installation has no page of errors")
    return found


def lesson(code: str) -> str:
    """The page's section on a code, `PCB101`: why, a program that fails, one that works; UsageError PCB578."""
    match = CODE.fullmatch(code)
    sections = dict(_sections(page().read_text(encoding="utf-8")))
    wanted = f"PCB{match[1]}" if match is not None else code
    if wanted not in sections:
        near = difflib.get_close_matches(wanted, sections, n=3, cutoff=0.8)
        meant = f"; near it are {', '.join(sorted(near))}" if near else ""
        raise UsageError("PCB578", f"there is no code {wanted!r}{meant}; codes are three digits, as in PCB101")
    return sections[wanted]


def _sections(text: str) -> list[tuple[str, str]]:
    """The code of each section and its text, blocks of code indented in place of their fences."""
    found = []
    for each in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        body = re.sub(r"^```\w+\n(.*?)^```$", _indented, each, flags=re.MULTILINE | re.DOTALL)
        found.append((each.partition(":")[0], body.rstrip() + "\n"))
    return found


def _indented(block: re.Match[str]) -> str:
    return re.sub(r"^(?=.)", "    ", block[1], flags=re.MULTILINE).rstrip("\n")
