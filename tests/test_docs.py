"""The documentation prints what the command line prints; UPDATE_GOLDENS=1 writes it anew."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest

from pcbatch.cli import main

ROOT = Path(__file__).parent.parent
BOX = re.compile(r"<!-- (run|file): (.*?) -->\n```(\w*)\n(.*?)```\n", re.DOTALL)


def printed(command: str) -> str:
    """What a box says: the command after a `$`, then its output, cut where the text says so."""
    words, _, cut = command.partition(" | first ")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(shlex.split(words)[1:]) == 0
    lines = output.getvalue().rstrip("\n").splitlines()
    if cut:
        lines = [*lines[: int(cut.split()[0])], "..."]
    return "\n".join([f"$ {words}", *lines]) + "\n"


def quoted(place: str) -> str:
    """A function of a file, decorators included."""
    path, name = place.split()
    text = (ROOT / path).read_text(encoding="utf-8")
    found = re.search(rf"^(@.*\n)?def {name}\(.*\n(([ \t].*)?\n)*", text, re.MULTILINE)
    assert found is not None
    return found.group().rstrip("\n") + "\n"


@pytest.mark.parametrize("page", ["docs/how-it-works.md"])
def test_pages_show_what_is_printed(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = ROOT / page
    text = path.read_text(encoding="utf-8")

    def filled(match: re.Match[str]) -> str:
        kind, what, language, _ = match.groups()
        body = printed(what) if kind == "run" else quoted(what)
        return f"<!-- {kind}: {what} -->\n```{language}\n{body}```\n"

    expected = BOX.sub(filled, text)
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(expected, encoding="utf-8")
    assert text == expected or os.environ.get("UPDATE_GOLDENS"), f"{page} has drifted; UPDATE_GOLDENS=1 rewrites it"
    assert len(BOX.findall(text)) == text.count("<!-- ")
