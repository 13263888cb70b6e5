"""Groups of calls in generated programs: a lane that forks gives what `f.single` gives, before all passes and after.

By an interpreter, so that many programs can be tried; `tests/adjoint/test_generated_forks.py` runs some.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import tensorflow as tf

from pcbatch.errors import CompileError
from pcbatch.ir.analysis.activity import activity
from pcbatch.ir.analysis.parallel_call_groups import forking, groups
from pcbatch.ir.machine_verifier import verify_machine
from pcbatch.lowering.codegen.emit import checked_sites
from pcbatch.optimize.machine import forks
from pcbatch.optimize.machine.forks import find_forks
from pcbatch.optimize.pipeline import machine_passes, run_passes
from tests.forked_runs import GRAPH, REFUSABLE, assert_near, batch, module, singles
from tests.generator_of_forks import program_of
from tests.ir.evaluation import interpreter_callbacks
from tests.ir.forked_interpreter import interpret_forked
from tests.ir.machine_interpreter import BrokenProgramError


def judge(seed):
    """Of how many calls the groups of the program of this number are; None if it is refused."""
    function, arguments = module(program_of(seed))["main"], batch(seed)
    try:
        _, compilation, captured = function.options(fork=True, **GRAPH).session.pipeline(arguments, {})
        environment = compilation.environment
    except CompileError as error:
        if not {each.code for each in error.diagnostics} <= REFUSABLE:
            raise
        return None
    environment = replace(environment, captured=replace(environment.captured, values=captured.values))
    program = find_forks(compilation.lowered)
    passes = machine_passes(partial(checked_sites, environment=environment), ())
    late = run_passes(program, passes, lambda name, program: verify_machine(program))
    assert {*activity(forking(late)).blocks} <= {*forking(late).order}
    lanes = singles(function, arguments)
    for stage in (program, late):
        evaluate, store = interpreter_callbacks(stage, environment)
        shared = [environment.captured.values[name] for name in stage.shared]
        for number, wanted in enumerate(lanes):
            names = function.__signature__.parameters
            values = [function.as_example(*each) for each in zip(names, (a[number] for a in arguments), strict=True)]
            found = interpret_forked(stage, values, evaluate, store, shared=shared)
            assert found.status == wanted.status
            if wanted.status == "OK":
                for ours, theirs in zip(tf.nest.flatten(found.value), tf.nest.flatten(wanted.value), strict=True):
                    assert_near(ours, theirs)
    return [len(group.members) for group in groups(program)]


QUICK = (72, 85, 97)
"""Short programs with two groups, or three."""
GIVEN_ZERO = 50109
"""A float64 argument of a forked call is an element out of range: the call is made all the same, with a zero."""
SEEDS = (*range(150), GIVEN_ZERO)


@pytest.mark.parametrize(
    "seed", [s if s in (*QUICK, GIVEN_ZERO) else pytest.param(s, marks=pytest.mark.slow) for s in SEEDS]
)
def test_forked_calls_give_what_single_gives(seed):
    found = judge(seed)
    if seed in QUICK:
        assert len(found) >= 2


def test_it_is_noticed_when_a_call_is_given_what_was_there_before_another(monkeypatch):
    """Sabotage: what is known behind a call is what was known before it."""
    monkeypatch.setattr(forks.Finder, "_return", lambda self, values, end: None)
    with pytest.raises(BrokenProgramError, match="reads f0_result, which never had a value"):
        judge(QUICK[0])
