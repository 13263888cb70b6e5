"""Type checkers see the user's signature through `autobatch`, and the options by name and type."""

from __future__ import annotations

from pathlib import Path

from mypy import api

ROOT = Path(__file__).parents[2]


def test_mypy_agrees_with_what_users_write(monkeypatch, tmp_path) -> None:
    """Only what the package exports is read, so this takes seconds, without a cache of earlier runs."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    file = ROOT / "tests" / "api" / "typed_usage.py"
    output, errors, code = api.run(
        [
            "--config-file",
            str(ROOT / "pyproject.toml"),
            "--warn-unused-ignores",
            "--cache-dir",
            str(tmp_path),
            str(file),
        ]
    )
    assert (code, errors) == (0, ""), output
