"""Generated programs: Python's own answer, lane by lane, against the IR's interpreter and every way to run a batch."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, currently_in_test_context, given, note, settings
from hypothesis import strategies as st

from pcbatch.errors import CompileError
from tests.generated_runs import (
    LANES,
    REFUSED,
    check_interpreted,
    check_limited,
    check_run,
    check_single,
    refused,
    truth,
)
from tests.generator import program_of, programs
from tests.harness import AUTO, GRAPH, KERNEL, OTHER_STRATEGIES, REFERENCE, XLA, Mode
from tests.program_features import features

QUICK = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
COMPILED = settings(QUICK, phases=[Phase.explicit, Phase.generate])
"""For tests in which each try costs a compilation: a failure is shown as it was found, not shrunk."""

SHORT = programs().filter(lambda source: source.count("\n") < 80)
"""Those that compile in seconds; all others are among those of `test_machines_at_length`."""


def judge(check: Callable[..., None], source: str, *how: Any) -> None:
    """Check a program, which may be refused for one of the few reasons that a generated one can give."""
    if currently_in_test_context():
        note(source)
    try:
        check(source, *how)
    except CompileError as error:
        if not refused(error):
            raise


# -- the tests ---------------------------------------------------------------------------------------------------------


@settings(QUICK, max_examples=10)  # and 150 in `test_what_the_generator_covers`
@given(programs())
def test_interpreters(source: str) -> None:
    judge(check_interpreted, source)


@settings(QUICK, max_examples=25)
@given(programs())
def test_single(source: str) -> None:
    judge(check_single, source)


@settings(COMPILED, max_examples=4)
@given(programs(), st.sampled_from(REFERENCE))
def test_reference(source: str, mode: Mode) -> None:
    judge(check_run, source, mode)


@settings(COMPILED, max_examples=4)
@given(SHORT, st.sampled_from(GRAPH))
def test_graph(source: str, mode: Mode) -> None:
    judge(check_run, source, mode)


@settings(COMPILED, max_examples=3)
@given(SHORT, st.sampled_from((*XLA, AUTO)))
def test_xla(source: str, mode: Mode) -> None:
    judge(check_run, source, mode)


@pytest.mark.slow
@settings(QUICK, max_examples=1000)
@given(programs())
def test_interpreters_at_length(source: str) -> None:
    judge(check_interpreted, source)


@pytest.mark.slow
@settings(COMPILED, max_examples=150)
@given(programs(), st.sampled_from(REFERENCE + GRAPH + XLA))
def test_machines_at_length(source: str, mode: Mode) -> None:
    judge(check_run, source, mode)


@pytest.mark.parametrize("seed", [4])
def test_kernels(seed: int) -> None:
    judge(check_run, program_of(seed), KERNEL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_kernels_at_length(seed: int) -> None:
    judge(check_run, program_of(seed), KERNEL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(160, 170))
def test_kernels_under_limits(seed: int) -> None:
    judge(check_limited, program_of(seed), KERNEL, 1, 9)


LOCAL, HYBRID, SWITCH, DEPTH, AGENDA = OTHER_STRATEGIES
SEEDS = 100
"""Slow runs of programs under one of the paper's other machines; half of them under limits, too."""
IN_TURN = tuple(zip(range(SEEDS), itertools.cycle(OTHER_STRATEGIES), strict=False))


@pytest.mark.parametrize(
    ("seed", "mode"), [(0, LOCAL), (13, LOCAL), (2, HYBRID), (23, SWITCH), (0, DEPTH), (13, AGENDA)], ids=str
)
def test_the_papers_other_machines(seed: int, mode: Mode) -> None:
    judge(check_run, program_of(seed), mode)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "mode"), IN_TURN, ids=str)
def test_the_papers_other_machines_at_length(seed: int, mode: Mode) -> None:
    judge(check_run, program_of(seed), mode)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "mode"), IN_TURN[::2], ids=str)
def test_the_papers_other_machines_under_limits(seed: int, mode: Mode) -> None:
    """Limits decide alike how a lane ends, and after how many steps."""
    judge(check_limited, program_of(seed), mode, 1, 9)


# -- what the generator covers -----------------------------------------------------------------------------------------

SAMPLE = 150
FLOORS = {
    **dict.fromkeys(("Primitive", "Call", "Jump", "Branch", "Return", "Push", "Pop", "PushJump"), 60),
    **dict.fromkeys(("Store", "Update", "loop turn"), 40),
    **dict.fromkeys(("while", "for", "nested loops", "break", "Fault"), 20),
    **dict.fromkeys(("early return in a loop", "continue"), 10),
    **dict.fromkeys(("two call sites", "call in a loop", "self-recursion"), 40),
    **dict.fromkeys(("call in a call", "call in a condition", "call returned as it is"), 15),
    **dict.fromkeys(("int", "float", "bool", "tuple", "array"), 40),
    **dict.fromkeys(("//", "%", "and", "not", "conditional expression"), 40),
    **dict.fromkeys(("or", "chained assignment", "unpacking", "augmented assignment"), 20),
    **dict.fromkeys(("chained comparison", "augmented store"), 10),
    **dict.fromkeys(("assert", "raise", "keyword arguments"), 20),
    **dict.fromkeys(("match", "walrus", "in", "not in", "math", "field", "dict", "bitwise operator"), 10),
    **dict.fromkeys(("loop else", "slice", "slice store", "static parameter", "starred"), 10),
    **dict.fromkeys(("enumerate", "zip", "reversed", "guard", "loop over a tuple", "mutual recursion"), 4),
    **dict.fromkeys(("shift", "loop over an array"), 1),
    **dict.fromkeys(("with", "lambda", "comprehension", "generator", "hidden variable"), 40),
    **dict.fromkeys(("copy", "copy, then a scope that hides it", "wild float", "wide int", "captured Variable"), 40),
    **dict.fromkeys(("with as", "kept lambda", "default of a lambda", "second name of an array", "hidden global"), 20),
    **dict.fromkeys(("with in a with", "rebinding in a with", "kept generator", "scope in a scope"), 10),
    **dict.fromkeys(("comprehension condition", "captured array"), 10),
}
"""In how many programs of the sample each must occur at least."""
STATUS_FLOORS = {"OK": 500, "RAISED": 3, "ASSERTION": 3, "ARITHMETIC": 5, "INDEX": 5}
"""How many lanes of the sample must end so at least."""


@pytest.mark.slow
def test_what_the_generator_covers(record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for source in map(program_of, range(SAMPLE)):
        try:
            programs_of = list(check_interpreted(source).values())
        except CompileError as error:
            counts["refused" if refused(error) else "refused wrongly"] += 1
            continue
        counts.update(features(ast.parse(source), programs_of))
        statuses.update(lane.status for lane in truth(source))
    report = [f"{name:24} {count:4} of {SAMPLE} programs" for name, count in sorted(counts.items())]
    report += [f"{name:24} {count:4} of {SAMPLE * LANES} lanes" for name, count in sorted(statuses.items())]
    record_property("what generated programs cover", "\n".join(report))
    assert counts["refused"] <= REFUSED * SAMPLE
    assert counts["refused wrongly"] == 0
    assert {name: counts[name] for name, floor in FLOORS.items() if counts[name] < floor} == {}
    assert {name: statuses[name] for name, floor in STATUS_FLOORS.items() if statuses[name] < floor} == {}
