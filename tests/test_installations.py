"""A fresh installation works on every Python that is found here, and with the lowest TensorFlow that is claimed.

Under `make test-all` only: pip fetches TensorFlow for each. A Python that is not found is named in a warning.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLAIMED = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
LOWEST = re.findall(r'"tensorflow>=([\d.]+)[,"]', (ROOT / "pyproject.toml").read_text("utf-8"))[0]

SMOKE = """
import sys
import numpy as np
import tensorflow as tf
import pcbatch

@pcbatch.autobatch
def fibonacci(n):
    if n <= 1:
        return 1
    return fibonacci(n - 2) + fibonacci(n - 1)

@pcbatch.autobatch
def sorted_(xs, key):
    for i in range(len(xs)):
        for j in range(i):
            if xs[i] < xs[j]:
                xs[i], xs[j] = xs[j], xs[i]
    assert xs[0] >= 0.0, f"{xs[0]} is negative"
    return xs, pcbatch.random.uniform(key)

batch = np.array([3, 7, 4, 5], np.int32)
rows = np.array([[3.0, 1.0, 2.0], [1.0, -2.0, 0.0]], np.float32)
keys = pcbatch.random.keys(7, 2)
for options in ({}, {"jit": False}, {"schedule": "earliest"}, {"backend": "reference"}):
    assert np.asarray(fibonacci.options(**options)(batch)).tolist() == [3, 21, 5, 8]
    run = sorted_.options(**options).run(rows, keys)
    assert run.status.tolist() == [0, 1], run
    assert np.asarray(run.value[0][0]).tolist() == [1.0, 2.0, 3.0]
    assert run.errors[0].message == "AssertionError: -2.0 is negative"
try:
    exec("@pcbatch.autobatch\\ndef f(x): return x")
except pcbatch.CompileError as error:
    assert "PCB100" in str(error)
print("smoke", pcbatch.__version__, sys.version.split()[0], tf.__version__)
"""


def interpreter(version: str) -> str | None:
    """A Python of that version: from pyenv's folder, else from PATH, if it really starts."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"), reverse=True)]
    on_path = shutil.which(f"python{version}")
    for candidate in [*candidates, *([on_path] if on_path else [])]:
        if Path(candidate).exists() and subprocess.run([candidate, "-c", ""], check=False).returncode == 0:
            return candidate
    return None


FOUND = {version: found for version in CLAIMED if (found := interpreter(version)) is not None}


def test_the_pythons_that_are_not_here() -> None:
    """Every claimed Python is either tried below or named in a warning."""
    missing = [version for version in CLAIMED if version not in FOUND]
    if missing:
        warnings.warn(f"not tried, since there is none here: Python {', '.join(missing)}", stacklevel=1)
    assert len(CLAIMED) >= 4
    assert FOUND, "there is no Python of a version that is claimed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "tensorflow"), [*((version, "") for version in FOUND), (min(FOUND, key=CLAIMED.index), LOWEST)]
)
def test_a_fresh_installation(version: str, tensorflow: str, tmp_path: Path) -> None:
    """In a virtual environment of its own, away from this folder: what pip installs is what is tried."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(words), capture_output=True, text=True, cwd=tmp_path, env=environment, check=False, timeout=1800
        )

    made = run(FOUND[version], "-m", "venv", "venv")
    assert made.returncode == 0, made.stderr
    python = str(tmp_path / "venv" / "bin" / "python")
    wanted = [f"tensorflow=={tensorflow}.*"] if tensorflow else []
    installed = run(python, "-m", "pip", "install", "--quiet", str(ROOT), *wanted)
    if installed.returncode:
        pytest.fail(f"pip cannot install for Python {version} (is there a network?): {installed.stderr[-500:]}", False)
    (tmp_path / "smoke.py").write_text(SMOKE, encoding="utf-8")
    done = run(python, "smoke.py")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("smoke ")
    assert tensorflow in done.stdout
    shown = run(python, "-m", "pcbatch", "compile", "smoke.py", "--entry", "fibonacci", "--dump-ast", "--dump-ir")
    assert shown.returncode == 0, shown.stderr
    assert "function fibonacci(n) -> result" in shown.stdout
    version_line = run(str(tmp_path / "venv" / "bin" / "pcbatch"), "--version").stdout
    assert version_line.split()[1] == done.stdout.split()[1]
