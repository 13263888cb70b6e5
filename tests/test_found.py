"""Programs of `tests/found/`, each of which pcbatch once got wrong: right now, or refused where the name says so.

A file is the text of a program as `tests.generator` writes it, without its header. Its docstring says what is right.
Behind "In:" it names the modes it runs in ("single": `f.single`, against Python itself) besides the interpreter of the
IR, which takes it after each part of the pipeline.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pcbatch.errors import CompileError
from tests.generated_runs import check_interpreted, check_run, check_single
from tests.generator import HEADER
from tests.harness import GRAPH, REFERENCE, XLA, Mode

FOUND = sorted((Path(__file__).parent / "found").glob("*.py"))
ENGINES: dict[str, Mode] = {"reference": REFERENCE[0], "graph": GRAPH[0], "xla": XLA[-1]}
RUNS = [
    pytest.param(
        path,
        engine,
        id=f"{path.stem}-{engine}",
        marks=[pytest.mark.slow] * (engine in ENGINES and engine != "reference"),
    )
    for path in FOUND
    for engine in re.findall(r"\w+", re.search(r"In: ([\w, ]+)\.", path.read_text(encoding="utf-8")).group(1))
]


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_interpreted(path: Path) -> None:
    try:
        check_interpreted(HEADER + path.read_text(encoding="utf-8"))
    except CompileError:
        if not path.stem.startswith("refusable"):
            raise


@pytest.mark.parametrize(("path", "engine"), RUNS)
def test_run(path: Path, engine: str) -> None:
    try:
        source = HEADER + path.read_text(encoding="utf-8")
        check_single(source) if engine == "single" else check_run(source, ENGINES[engine])
    except CompileError:
        if not path.stem.startswith("refusable"):
            raise
