"""`python -m tools.dist`: build the wheel and the sdist, and check both as a user would meet them.

The metadata is checked by twine. The wheel, which is built from the sdist, is installed into an environment with
nothing in it, and the README's first program runs there, away from the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^(\S.*?)  # -> (.*)$", re.MULTILINE)


def call(*words: str | Path, cwd: Path = ROOT) -> str:
    """Run a command; what it prints, if it succeeds."""
    away = ("PYTHONPATH", "VIRTUAL_ENV", "PCBATCH_CACHE")
    environment = {key: value for key, value in os.environ.items() if key not in away}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def build() -> tuple[Path, Path]:
    """The wheel and the sdist from which it was built."""
    shutil.rmtree(DIST, ignore_errors=True)
    call(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def program() -> str:
    """The README's first program, which prints what its lines show."""
    text = PROGRAM.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    return SHOWN.sub(lambda match: f"print({match[1]}.numpy())", text)


def install(wheel: Path, folder: Path) -> Path:
    """A bare environment with the wheel and what it requires; its Python."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", "--no-compile", wheel)
    call(python, "-m", "pip", "check")
    return python


def main() -> None:
    """Build, check, install, run."""
    wheel, sdist = build()
    print(call(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist).strip())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = install(wheel, folder / "bare")
        (folder / "program.py").write_text(program(), encoding="utf-8")
        print(call(python, "program.py", cwd=folder).strip())
        print(call(folder / "bare" / "bin" / "pcbatch", "--version", cwd=folder).strip())


if __name__ == "__main__":
    main()
