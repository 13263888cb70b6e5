"""docs/errors.md has every code, and of its examples one kind gives exactly that code, the other none.

How an entry is written stands at the top of the page.
"""

from __future__ import annotations

import importlib
import itertools
import linecache
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.commands.cli import main
from pcbatch.frontend import CODES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "errors.md"
CODE = re.compile(r"\bPCB\d{3}\b")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
NEW_SYNTAX = "(Python 3.12)"


@dataclass(frozen=True)
class Entry:
    """One code of the page: the text of each of its parts."""

    code: str
    title: str
    lesson: str
    parts: dict[str, list[tuple[str, str]]]
    """The blocks of code under "Fails" and "Works", each with its language."""


def entries() -> list[Entry]:
    """The page's entries, in its order."""
    found = []
    for text in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, rest = text.partition("\n")
        code, _, title = head.partition(": ")
        lesson, *parts = re.split(r"^(Fails|Works):\n", rest, flags=re.MULTILINE)
        blocks = {name: BLOCK.findall(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}
        found.append(Entry(code, title, lesson.strip(), blocks))
    return found


ENTRIES = entries()


def codes_in_the_source() -> dict[str, str]:
    """Every code that a file of pcbatch names, with the first such file."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "pcbatch").rglob("*.py")):
        for code in CODE.findall(path.read_text(encoding="utf-8")):
            found.setdefault(code, str(path.relative_to(ROOT)))
    return found


def test_every_code_has_an_entry_and_every_entry_a_code() -> None:
    source, page = codes_in_the_source(), {entry.code for entry in ENTRIES}
    faults = [
        f"docs/errors.md has no entry `## {c}: ..`, which {source[c]} names" for c in sorted(source.keys() - page)
    ]
    faults += [f"docs/errors.md has {c}, which no file in pcbatch/ names" for c in sorted(page - source.keys())]
    assert not faults, "\n".join(faults)
    assert {code for code in page if code < "PCB300"} == set(CODES), (
        "frontend/check/codes.py lists the codes below PCB300"
    )


def test_entries_are_complete_and_in_order() -> None:
    faults = []
    for entry in ENTRIES:
        if not CODE.fullmatch(entry.code) or not entry.title:
            faults.append(f"`## {entry.code}` is not of the form `## PCBnnn: title`")
        if not entry.lesson:
            faults.append(f"{entry.code} has no lesson")
        faults += [f"{entry.code} has no code under `{p}:`" for p in ("Fails", "Works") if not entry.parts.get(p)]
    codes = [entry.code for entry in ENTRIES]
    faults += [f"{code} stands after {before}" for before, code in itertools.pairwise(codes) if code <= before]
    assert not faults, "\n".join(faults)


class Runner:
    """Runs the blocks of one part of an entry in a folder of their own."""

    def __init__(self, name: str, folder: Path, capsys: Any):
        self.name, self.folder, self.capsys = name, folder, capsys
        self.names: dict[str, Any] = {"__name__": name, "np": np, "tf": tf, "pcbatch": pcbatch}

    def run(self, blocks: list[tuple[str, str]]) -> set[str]:
        """The codes of the error that ends the blocks, if one does."""
        for place, (language, text) in enumerate(blocks):
            file = re.match(r"# (\w+\.py)\n", text)
            if file is not None:
                (self.folder / file[1]).write_text(text, encoding="utf-8")
                continue
            found = self._python(f"{self.name}_{place}", text) if language == "python" else self._console(text)
            if found:
                assert place == len(blocks) - 1, f"{found} before the last block"
                return found
        return set()

    def _python(self, name: str, text: str) -> set[str]:
        file = str(self.folder / f"{name}_block.py")
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        try:
            exec(compile(text, file, "exec", dont_inherit=True), self.names)
            for value in list(self.names.values()):
                if isinstance(value, pcbatch.Batched):
                    value.options(in_axes=0).check() if value.__signature__.parameters else value.ir()
        except pcbatch.PcbatchError as error:
            return set(re.findall(r"^(PCB\d{3}):", str(error), re.MULTILINE))
        finally:
            del linecache.cache[file]
        return set()

    def _console(self, text: str) -> set[str]:
        for line in text.splitlines():
            prompt, command, *words = shlex.split(line)
            assert (prompt, command) == ("$", "pcbatch")
            code = main(words)
            said = self.capsys.readouterr().err
            if code:
                return set(re.findall(r"\b(PCB\d{3}):", said))
        return set()


@pytest.fixture
def runner(request, tmp_path, monkeypatch, capsys) -> Iterator[Runner]:
    """A runner in an empty folder; what it imports is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delenv("XLA_FLAGS", raising=False)  # which a page that ran before may have set for the process
    modules: dict[str, ModuleType] = dict(sys.modules)
    importlib.invalidate_caches()
    yield Runner(re.sub(r"\W", "_", request.node.name), tmp_path, capsys)
    for name, module in list(sys.modules.items()):
        if name not in modules and str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.code)
def test_the_failing_example_gives_its_code(entry: Entry, runner: Runner) -> None:
    if entry.title.endswith(NEW_SYNTAX) and sys.version_info < (3, 12):
        with pytest.raises(SyntaxError):
            runner.run(entry.parts["Fails"])
        return
    assert runner.run(entry.parts["Fails"]) == {entry.code}


MENDED = [
    pytest.param(entry, marks=pytest.mark.slow if entry.code in ("PCB551", "PCB558") else ()) for entry in ENTRIES
]
"""Of two codes the example is a whole run of the sampler."""


@pytest.mark.parametrize("entry", MENDED, ids=lambda entry: entry.code)
def test_the_mended_example_gives_no_error(entry: Entry, runner: Runner) -> None:
    assert runner.run(entry.parts["Works"]) == set()
