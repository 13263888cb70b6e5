"""One page for each error code, and their index, from the entries of `docs/errors.md`."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"^## (PCB\d{3}): (.*)$", re.MULTILINE)


def pages(text: str) -> dict[str, str]:
    """The page of each code, by code."""
    starts = [*_ENTRY.finditer(text)]
    ends = [*(each.start() for each in starts[1:]), len(text)]
    return {
        match[1]: f"# {match[1]}: {match[2]}\n{text[match.end() : end].rstrip()}\n"
        for match, end in zip(starts, ends, strict=True)
    }


def index(text: str) -> str:
    """The page's introduction, and a table of all codes for each kind."""
    entries = [(match[1], match[2]) for match in _ENTRY.finditer(text)]
    introduction = re.sub(r"<!--.*?-->\n*", "", text[: text.index(f"## {entries[0][0]}")], flags=re.DOTALL)
    kinds = dict(re.findall(r"^\| (PCB\d)xx \| ([^|]*?) \|", introduction, re.MULTILINE))
    parts = [introduction.rstrip()]
    for kind, title in kinds.items():
        rows = [f"| [{code}](#{code.lower()}) | {said} |" for code, said in entries if code.startswith(kind)]
        parts.append("\n".join([f"## {kind}xx: {title}", "", "| code | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"
