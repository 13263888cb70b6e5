"""The README as a package index shows it: the build calls this hook for the metadata of wheel and sdist.

An index knows no files of the repository. If `[project.urls]` names a Source, links to files lead there; else their
text stays, without the link.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[((?:`[^`\n]*`|[^\]`])*)\]\((?!https?:)([^)\s]*)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)


def for_an_index(text: str, source: str | None) -> str:
    """The README with links that work away from the repository."""

    def link(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if source is None or target.startswith("#"):
            return words
        return f"{picture}[{words}]({source.rstrip('/')}/blob/main/{target})"

    parts = FENCED.split(COMMENT.sub("", text))
    return "".join(part if number % 2 else LINK.sub(link, part) for number, part in enumerate(parts))


class ReadmeHook(MetadataHookInterface):
    """Puts the README into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `readme`, which pyproject.toml says is dynamic."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_an_index(text, source)}
