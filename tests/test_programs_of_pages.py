"""The programs of some pages run, those that need JAX, PyTorch or Dask where these are installed."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("deploying", "jax")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"^# (\w+\.py)\n")
"""The first line of a block that is a file of its own."""
NEEDS = re.compile(r"^# needs (\w+)$", re.MULTILINE)
ALONE = re.compile(r"__main__|set_logical_device")
"""What is in a block that is a process of its own: it starts others, or sets up TensorFlow."""


def blocks(page):
    """The programs of a page, without its files, and those among them that have all that they need."""
    found = BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    return [text for text in found if not FILE.match(text)]


def missing(text):
    return {name for name in NEEDS.findall(text) if importlib.util.find_spec(name) is None}


def run(page, text, folder):
    """Run a program beside the files of its page."""
    for block in BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")):
        if (name := FILE.match(block)) is not None:
            (folder / name[1]).write_text(block, encoding="utf-8")
    (folder / "program.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(folder), str(ROOT), *sys.path[1:]])
    environment = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("page", PAGES)
def test_its_programs_run_one_after_another(page, tmp_path):
    every = [text for text in blocks(page) if not ALONE.search(text)]
    can_run = [text for text in every if not missing(text)]
    if can_run:
        bodies = ("".join(f"    {line}\n" if line else "\n" for line in text.splitlines()) for text in can_run)
        parts = [f"def part_{number}():\n{body}\n\npart_{number}()\n" for number, body in enumerate(bodies)]
        run(page, "\n\n".join(parts), tmp_path)
    if len(can_run) < len(every):
        names = sorted({name for text in every for name in missing(text)})
        pytest.skip(f"{len(every) - len(can_run)} of {len(every)} need {', '.join(names)}")


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text in blocks("deploying") if ALONE.search(text)], ids="{:.20}".format)
def test_programs_that_are_processes_run(text, tmp_path):
    if missing(text):
        pytest.skip(f"{', '.join(sorted(missing(text)))} is not installed")
    run("deploying", text, tmp_path)
