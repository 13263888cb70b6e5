"""The programs of `tests/programs/cases/`, judged by Python, against the outcomes that are known.

`outcomes.txt` lists them: right, or refused with its codes. An outcome that changes fails here; `UPDATE_GOLDENS=1
pytest tests/programs/test_cases.py -k known_outcomes` rewrites the
file. Read it then.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.goldens import check_golden
from tests.pairwise import covering
from tests.program_features import of_function
from tests.programs.judging import judge
from tests.programs.readings import OPTIONS, reading
from tests.programs.table import cases

FOLDER = Path(__file__).parent
CASES = cases()
GOLDEN = FOLDER / "outcomes.txt"
KNOWN = dict(line.split(": ") for line in GOLDEN.read_text(encoding="utf-8").splitlines())
QUICK = 20
"""The quick tests run one case of this many, by the cheapest way through the front end, and all of some modules."""
WHOLE = "layouts."
COMPILED = covering(
    tuple(CASES),
    [name for name in OPTIONS if name != "reference"],
    {name: of_function(case.function) for name, case in CASES.items()},
)
"""Each case compiled in one of the ways, each construct in each."""


def outcome(name: str, options: str) -> str:
    """The outcome of a case under a set of options."""
    case = CASES[name]
    return str(judge(case.function, case.arguments, reading(options), case.twin))


@pytest.mark.parametrize("name", [name for k, name in enumerate(CASES) if k % QUICK == 0 or name.startswith(WHOLE)])
def test_some_cases(name: str) -> None:
    assert outcome(name, "reference") == KNOWN[name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), COMPILED)
def test_cases(name: str, options: str) -> None:
    assert outcome(name, options) == KNOWN[name]


def test_no_known_outcome_is_wrong() -> None:
    assert {outcome.partition(" ")[0] for outcome in KNOWN.values()} == {"right", "refused"}


@pytest.mark.slow
def test_known_outcomes() -> None:
    check_golden(GOLDEN, "".join(f"{name}: {outcome(name, 'reference')}\n" for name in CASES))
