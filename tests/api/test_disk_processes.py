"""Compiled programs on disk, in processes of their own: what XLA compiled is found, shared, or written elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_disk import POWERS

ROOT = Path(__file__).parent.parent.parent

MAIN = """
import json, sys
sys.path.insert(0, {folder!r})
import program
value = program.powers([3, 0, 7, 5], [1.0, 2.0, 0.5, 4.0])
other = program.powers.options(form="lockstep")([3, 0], [1.0, 2.0])
counts = program.powers.run([3, 0], [1.0, 2.0]).block_runs
stats = [program.powers.stats(), program.powers.options(form="lockstep").stats()]
print(json.dumps([value.numpy().tobytes().hex(), other.numpy().tobytes().hex(), [s.hits for s in stats],
                  [s.misses for s in stats]]))
"""


def process(tmp_path: Path, cache: Path | None, before: str = "") -> subprocess.Popen[str]:
    program = tmp_path / "program.py"
    if not program.exists():  # once: a process that is starting may be reading it, and find half of it
        program.write_text(POWERS)
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    variables.pop("PCBATCH_CACHE", None)
    if cache is not None:
        variables["PCBATCH_CACHE"] = str(cache)
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", before + MAIN.format(folder=str(tmp_path))]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=variables, text=True, **pipes)


def result(running: subprocess.Popen[str]) -> list[Any]:
    out, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


def compiled(cache: Path) -> dict[Path, float]:
    """XLA's files, and when each was written."""
    return {path: path.stat().st_mtime for path in cache.glob("*/*/*.compiled")}


@pytest.mark.slow
def test_another_process_finds_what_xla_has_compiled(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    *first, hits, misses = result(process(tmp_path, cache))
    assert hits == [0, 0]
    assert min(misses) > 0
    before = compiled(cache)
    assert before, "in lockstep: native code is made without XLA"
    *again, hits, misses = result(process(tmp_path, cache))
    assert again == first
    assert misses == [0, 0]
    assert min(hits) > 0
    assert compiled(cache) == before, "nothing was compiled"
    assert not [*cache.glob("running-*")]


@pytest.mark.slow
def test_nothing_fails_where_xla_cannot_write(tmp_path: Path) -> None:
    *alone, _, _ = result(process(tmp_path, None))
    spoil = (
        "import glob, os, warnings\nimport pcbatch\nwarnings.simplefilter('ignore')\n"
        "for path in glob.glob(os.environ['PCBATCH_CACHE'] + '/running-*'):\n"
        "    os.rmdir(path)\n    open(path, 'w').close()\n"
    )
    *values, hits, misses = result(process(tmp_path, tmp_path / "cache", before=spoil))
    assert values == alone
    assert hits == [0, 0]
    assert min(misses) > 0
    assert not [*(tmp_path / "cache").glob("running-*")]


@pytest.mark.slow
def test_processes_share_a_folder_at_the_same_time(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    *alone, _, _ = result(process(tmp_path, None))
    both = [process(tmp_path, cache) for _ in range(2)]
    for *values, _, _ in map(result, both):
        assert values == alone
    for path in cache.glob("*/*/*.compiled"):  # XLA's own are not looked into, unless their checksums are right
        path.write_bytes(path.read_bytes()[:-1] + b"\0\1")
    *values, hits, _ = result(process(tmp_path, cache))
    assert values == alone
    assert min(hits) > 0
