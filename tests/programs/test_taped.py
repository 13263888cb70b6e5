"""Generated programs with a tape in the body, judged by TensorFlow's eager tape: right, or refused as is known."""

from __future__ import annotations

import pytest

from tests.programs.generator import function_of
from tests.programs.judging import judge
from tests.programs.readings import reading
from tests.programs.taped import arguments, eagerly, program_of

QUICK, SLOW = range(16), range(16, 200)
REFUSED = ("PCB413", "PCB604")
"""A batched function that is differentiated twice, or by what it reads from around it."""


def outcomes(seeds: range, name: str) -> list[str]:
    """The outcome of each program; a wrong or raw one fails."""
    found = []
    for seed in seeds:
        source = program_of(seed)
        outcome = judge(function_of(source), arguments(), reading(name), eagerly(source))
        assert outcome.kind == "right" or outcome.detail in REFUSED, f"{seed}\n{source}\n{outcome.detail}"
        found.append(outcome.kind)
    return found


@pytest.mark.parametrize("part", range(2))
def test_programs_with_tapes(part: int) -> None:
    assert outcomes(QUICK[part::2], "reference").count("right") >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reference", "default"])
def test_programs_with_tapes_at_length(name: str) -> None:
    outcomes(SLOW if name == "reference" else QUICK, name)
