"""MkDocs calls these: they add pages that are drawn from other files, and turn links to files into links to pages.

No file is written: pages that are drawn exist while the site is built. `mkdocs.yml` names this file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tools.site import errors  # noqa: E402
from tools.site.links import PAGES, relinked, site_path  # noqa: E402

LANGUAGES = {".py": "python", ".c": "c", ".json": "json", ".toml": "toml", "": "make"}
"""The colouring of files of code, by their endings."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside of `docs/`, one for each error code, and one for each file that is linked to."""
    texts = {
        f"docs/{file.src_uri}": Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path
    }
    texts |= {name: ROOT / name for name in PAGES}
    sources: set[str] = set()

    def source(path: str) -> str:
        found = ROOT / path
        if not found.exists():
            return path  # MkDocs says that the link leads nowhere
        sources.add(path)
        return f"files/{path.rstrip('/')}.md"

    def add(uri: str, content: str) -> None:
        if (before := files.get_file_from_path(uri)) is not None:
            files.remove(before)
        files.append(File.generated(config, uri, content=content))

    for path, file in texts.items():
        text = file.read_text(encoding="utf-8")
        if path == "docs/errors.md":
            for code, page in errors.pages(text).items():
                to = f"errors/{code}.md"
                add(to, relinked(page, path, source, to))
            text = errors.index(text)
        head = "---\nhide: [navigation]\n---\n\n" if path == "README.md" else ""
        add(site_path(path), head + relinked(text, path, source))
    for path in sorted(sources):
        add(f"files/{path.rstrip('/')}.md", shown(path))
    return files


def shown(path: str) -> str:
    """A page with the text of a file, or a list of the files of a folder."""
    file = ROOT / path
    if file.is_dir():
        found = sorted(each.relative_to(file).as_posix() for each in file.rglob("*.py"))
        return f"# `{path}`\n\n" + "".join(f"- `{name}`\n" for name in found)
    fence = "`" * 5
    text = file.read_text(encoding="utf-8").rstrip()
    return f"# `{path}`\n\n{fence}{LANGUAGES.get(file.suffix, 'text')}\n{text}\n{fence}\n"
