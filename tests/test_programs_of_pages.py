"""The programs of some pages run, those that need JAX, PyTorch or Dask where these are installed."""

from __future__ import annotations

import importlib.util
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


@pytest.mark.parametrize("page", PAGES)
def test_its_programs_run(page, tmp_path):
    blocks = BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    others = [text for text in blocks if not FILE.match(text)]
    for text in blocks:
        if (name := FILE.match(text)) is not None:
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
    missing = {name for text in others for name in NEEDS.findall(text) if importlib.util.find_spec(name) is None}
    run = [text for text in others if not missing.intersection(NEEDS.findall(text))]
    path = [str(tmp_path), str(ROOT), *sys.path[1:]]
    main = "".join(f"def part_{number}():\n{_indented(text)}\n\n\n" for number, text in enumerate(run))
    calls = "".join(f"    part_{number}()\n" for number in range(len(run)))
    (tmp_path / "page.py").write_text(f"{main}if __name__ == '__main__':\n    pass\n{calls}", encoding="utf-8")
    environment = {"PYTHONPATH": ":".join(path), "TF_CPP_MIN_LOG_LEVEL": "3", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if missing:
        pytest.skip(f"{len(others) - len(run)} of {len(others)} need {', '.join(sorted(missing))}")


def _indented(text):
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())
