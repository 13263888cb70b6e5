"""Generated programs with functions inside functions: Python's own answer against batches of the plainest machine."""

from __future__ import annotations

import pytest

from pcbatch.errors import CompileError, Diagnostic
from tests.generated_runs import check_run, truth
from tests.generator_of_functions import program_of_functions
from tests.harness import REFERENCE

SEEDS = 400
QUICK = (6, 13, 14)
"""Programs that went wrong before names of functions inside functions were kept apart, judged by plain Python."""


def may_be(diagnostic: Diagnostic) -> bool:
    """Whether a program may be refused so: a lambda cannot stand for a function, or `max` in a helper has a key."""
    words = {"PCB401": "unexpected keyword argument 'key'"}
    return words.get(diagnostic.code, "?") in diagnostic.message


def judge(seed: int) -> bool:
    """Whether a program is not refused; if so, it must be right."""
    source = program_of_functions(seed)
    try:
        check_run(source, REFERENCE[0])
    except CompileError as error:
        if not all(map(may_be, error.diagnostics)):
            raise
        return False
    return any(lane.status == "OK" for lane in truth(source))


@pytest.mark.parametrize("seed", QUICK)
def test_functions_inside(seed: int) -> None:
    assert judge(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, SEEDS, 40))
def test_functions_inside_at_length(start: int) -> None:
    assert sum(map(judge, range(start, start + 40))) >= 30
