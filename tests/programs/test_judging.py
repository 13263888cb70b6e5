"""The judge of programs, what the generator says that it writes, and programs with classes made smaller."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from pcbatch.errors import PcbatchError
from tests.programs import judge as command
from tests.programs.generator import KINDS, arguments, function_of, kinds_of, program_of, programs
from tests.programs.judging import Lane, NoProgramError, Outcome, examples, judge, numbers, truth
from tests.smaller import smaller

X = np.array([1.0, -2.0, 0.5], np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)


class RefusedError(PcbatchError):
    """Stands in for a refusal."""

    code = "PCB999"


def halved(x: Any, row: Any) -> Any:
    if x < 0.0:
        raise ValueError("negative")
    row[0] = x / 2
    return {"row": row}, [x, x]


def by_python(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    return truth(function, arguments)


def one_more(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    return [lane and [*lane[:-1], lane[-1] + 1] for lane in truth(function, arguments)]


def never_failing(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    return [lane or [np.zeros(2), np.zeros(()), np.zeros(())] for lane in truth(function, arguments)]


def refusing(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    raise RefusedError


def crashing(function: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> list[Lane]:
    raise KeyError("xs")


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (by_python, Outcome("right")),
        (one_more, Outcome("wrong", "lane 0: [0.5, 1.0], 1.0, 2.0 instead of [0.5, 1.0], 1.0, 1.0")),
        (never_failing, Outcome("wrong", "lane 1: [0.0, 0.0], 0.0, 0.0 instead of a failure")),
        (refusing, Outcome("refused", "PCB999")),
        (crashing, Outcome("raw", "KeyError: 'xs'")),
    ],
)
def test_outcomes(run: Callable[..., Any], outcome: Outcome) -> None:
    assert judge(halved, (X, ROWS), run) == outcome


def test_a_program_that_python_cannot_run_is_none() -> None:
    with pytest.raises(NoProgramError, match="NameError"):
        judge(lambda x, row: unknown, (X, ROWS), by_python)  # type: ignore[name-defined]  # noqa: F821


def test_the_arguments_of_a_lane_are_its_own() -> None:
    (x, row), *_ = examples((X, ROWS))
    row[0] = 7.0
    assert isinstance(x, float)
    assert ROWS[0, 0] == 0.0


@settings(suppress_health_check=list(HealthCheck), max_examples=40)
@given(programs())
def test_python_runs_every_program(source: str) -> None:
    """Lanes end with a result or by an exception that a lane may have; any other one is `NoProgramError`."""
    assert any(truth(function_of(source), arguments()))


def test_programs_have_their_kinds() -> None:
    """Alone, each kind is in most programs, and what Python makes of these is numbers that float32 holds."""
    for kind in KINDS:
        sources = [program_of(seed, [kind]) for seed in range(8)]
        assert sum(kind in kinds_of(source) for source in sources) >= 4, kind
        for lane in truth(function_of(sources[0]), arguments()):
            assert all(np.array_equal(part, part.astype(np.float32)) for part in lane or ())


def test_a_program_with_classes_is_made_smaller() -> None:
    """Methods, statements and results go that do not matter."""
    source = program_of(0, ["attributes", "fields"])

    def fails(text: str) -> bool:
        tree = ast.parse(text)
        try:
            lane = numbers(function_of(text)(*next(examples(arguments()))))
        except Exception:
            return False
        return bool(lane) and any(isinstance(node, ast.ClassDef) for node in tree.body) and "Point(" in text

    small = smaller(source, fails, 200)
    assert len(small.splitlines()) < 12
    assert fails(small)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    place = f"{__name__}:"
    assert command.main(["--reading", f"{place}by_python", "--count", "3", "--kinds", "views,rows", "--alone"]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "kind                    right  refused    wrong      raw",
        "views                       3        0        0        0",
        "rows                        3        0        0        0",
    ]
    assert command.main(["--reading", f"{place}one_more", "--count", "1", "--kinds=-loops", "--show", "1"]) == 1
    assert "wrong, lane 0" in capsys.readouterr().out
