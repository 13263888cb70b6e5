"""`python -m tools.dist [--fetch]`: build the wheel and the sdist, and check both as a user would meet them.

The metadata is checked by twine. The wheel, which is built from the sdist, is installed into an environment that has
nothing but what it requires, and the README's first program runs there, away from the repository. The required packages
are lent by the environment that runs this, which takes seconds; with `--fetch` pip downloads them, TensorFlow too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

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


def required(name: str) -> dict[str, Distribution]:
    """The distributions that one requires, and what these require, without extras that nobody asks for."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(each) for each in distribution(name).requires or []]
    while waiting:
        requirement = waiting.pop()
        extras = requirement.extras or {""}
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        if requirement.name not in found:
            found[requirement.name] = distribution(requirement.name)
            waiting += [Requirement(each) for each in found[requirement.name].requires or []]
    return found


def lend(folder: Path) -> None:
    """Link what pcbatch requires into an environment, and nothing else."""
    (packages,) = folder.glob("lib/python*/site-packages")
    for each in required("pcbatch").values():
        for top in {Path(str(file)).parts[0] for file in each.files or []} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(each.locate_file(top))))


def install(wheel: Path, folder: Path, fetch: bool) -> Path:
    """An environment with the wheel and what it requires; its Python."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    if not fetch:
        lend(folder)
    call(python, "-m", "pip", "install", "--quiet", *([] if fetch else ["--no-index"]), wheel)
    call(python, "-m", "pip", "check")
    return python


def main() -> None:
    """Build, check, install, run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="download what pcbatch requires")
    fetch = parser.parse_args().fetch
    wheel, sdist = build()
    print(call(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist).strip())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = install(wheel, folder / "bare", fetch)
        (folder / "program.py").write_text(program(), encoding="utf-8")
        print(call(python, "program.py", cwd=folder).strip())
        print(call(folder / "bare" / "bin" / "pcbatch", "--version", cwd=folder).strip())


if __name__ == "__main__":
    main()
