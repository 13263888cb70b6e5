"""The programs of the pages for beginners run, and show what stands behind their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import check, sections

ROOT = Path(__file__).parent.parent
TUTORIAL, SURPRISES = (sections(ROOT / "docs" / f"{name}.md") for name in ("tutorial", "surprises"))


@pytest.mark.parametrize("title", TUTORIAL)
def test_steps_of_the_tutorial(title, tmp_path):
    taped = "GradientTape" in TUTORIAL[title]  # a tape follows batches, not lists of results
    check(TUTORIAL[title], tmp_path / "step_of_the_tutorial.py", "" if taped else "undecorated singly")


@pytest.mark.parametrize("title", SURPRISES)
def test_surprises(title, tmp_path):
    """Some are differences to Python; `f.single` has all of them."""
    check(SURPRISES[title], tmp_path / "surprise.py", "singly")


DATA = sections(ROOT / "docs" / "data.md")


@pytest.mark.parametrize("title", DATA)
def test_kinds_of_data(title, tmp_path):
    check(DATA[title], tmp_path / "kind_of_data.py", "")


def test_there_are_ten():
    assert len(SURPRISES) == 10
