"""The examples run, and print what their comments promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

SAID = {
    "fibonacci": "fibonacci([3, 7, 4, 5]) = [ 3 21  5  8]",
    "collatz": "",
    "gcd": "",
    "adaptive_simpson": "",
    "tree_sum": "",
    "rnn": "1 compilation",
}
"""A line that each example prints."""


def test_every_example_is_run_here():
    assert set(SAID) == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", SAID)
def test_example(name, capsys):
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.main()
    printed = capsys.readouterr().out
    assert SAID[name] in printed
    assert "nan" not in printed
