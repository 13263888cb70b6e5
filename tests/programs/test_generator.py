"""Generated programs with objects, views, closures, helpers and containers, judged by Python: right, or refused.

The quick tests run programs of one kind of constructs each, by the cheapest way through the front end. The slow tests
run programs of every kind and print a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.programs.faults import FAULTS, Fault
from tests.programs.generator import KINDS, arguments, function_of, kinds_of, program_of
from tests.programs.judge import lines_of, outcome_of
from tests.programs.judging import Outcome, truth
from tests.programs.readings import OPTIONS, reading

QUICK, SLOW = range(30), range(30)
"""Numbers of programs: of all kinds in turns, and of each kind."""
MIXED = 100
"""How many programs of all kinds at once."""


def allowed(outcome: Outcome) -> bool:
    """Whether a program may end so."""
    return outcome.kind in ("right", "refused")


@pytest.mark.parametrize("seed", QUICK)
def test_programs_of_one_kind(seed: int) -> None:
    source = program_of(seed, [list(KINDS)[seed % len(KINDS)]])
    outcome = outcome_of(source, reading("reference"))
    assert allowed(outcome), f"{source}\n{outcome.detail}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_programs_of_one_kind_at_length(kind: str, record_property: Callable[[str, object], None]) -> None:
    table: dict[str, Counter[str]] = {kind: Counter()}
    for seed in SLOW:
        outcome = outcome_of(program_of(seed, [kind]), reading("reference"))
        table[kind][outcome.kind] += 1
    record_property("generated programs", "\n".join(lines_of(table)))
    assert sum(table[kind].values()) == table[kind]["right"] + table[kind]["refused"]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_programs_of_all_kinds(options: str, record_property: Callable[[str, object], None]) -> None:
    """Constructs that are right alone may be wrong together."""
    table: dict[str, Counter[str]] = {}
    faults = 0
    for seed in range(MIXED):
        source = program_of(seed)
        outcome = outcome_of(source, reading(options))
        faults += not allowed(outcome)
        for kind in kinds_of(source):
            table.setdefault(kind, Counter())[outcome.kind] += 1
    record_property(f"generated programs of all kinds, {options}", "\n".join(lines_of(table)))
    assert faults == 0


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults_that_were(fault: Fault) -> None:
    """Python's answers are those of the table, and pcbatch's are the same."""
    found = truth(function_of(fault.module), arguments())
    assert [float(lane[0]) for lane in found if lane] == list(fault.answers)
    outcome = outcome_of(fault.module, reading("reference"))
    assert allowed(outcome), outcome.detail
