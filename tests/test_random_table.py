"""Draws in batches as a user's process makes them: each draw, form of its arguments and form of program."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.random_table import DRAWS

PARTS = [
    pytest.param(("one of each/plain",), id="quick"),
    *(pytest.param((draw,), id=draw, marks=pytest.mark.slow) for draw in DRAWS),
]


@pytest.mark.parametrize("parts", PARTS)
def test_draws_in_a_batch_are_those_of_the_lanes_alone(parts: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tests.random_table", *parts]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
