"""Links of pages: those of a repository's reader become those of the site's.

In the repository a page links to files beside it, to files of code and to the README. On the site each entry of
`docs/errors.md` is a page, the README is the first page, and a linked file of code is a page that shows it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

LINK = re.compile(r"(\]\()([^)\s#:]*)(#[^)\s]*)?(\))")
FENCED = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
PAGES: Mapping[str, str] = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages of the repository's root and what they are called on the site."""
ERROR = re.compile(r"#pcb(\d{3})\b")


def relinked(text: str, path: str, source: Callable[[str], str], to: str = "") -> str:
    """Rewrite the links of a page, which lies at `path` in the repository.

    Args:
        text: the page in Markdown.
        path: its place in the repository, such as `docs/when.md`.
        source: the page of the site that shows a file of the repository, such as `examples/gcd.py`.
        to: the page's place on the site, if it is not that of the whole file.
    """
    here = posixpath.dirname(to or site_path(path))

    def link(match: re.Match[str]) -> str:
        start, target, anchor, end = match[1], match[2], match[3] or "", match[4]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
        code = ERROR.match(anchor) if file == "docs/errors.md" else None
        if not target and not code:
            return match[0]
        if code:
            place, anchor = f"errors/PCB{code[1]}.md", ""
        elif file.startswith("docs/") or file in PAGES:
            place = site_path(file)
        else:
            place = source(file)
        return f"{start}{posixpath.relpath(place, here or '.')}{anchor}{end}"

    parts = FENCED.split(text)
    return "".join(part if number % 2 else LINK.sub(link, part) for number, part in enumerate(parts))


def site_path(file: str) -> str:
    """The place of a page of the repository on the site."""
    return PAGES.get(file) or file.removeprefix("docs/")
