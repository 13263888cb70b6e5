"""Compaction: gathered execution against masked execution, over the corpus with every block declared expensive."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function.executing import run_on
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.schedules import SCHEDULES
from tests.harness import BATCH, NAMES, assert_close, leaves, load
from tests.pairwise import every_second
from tests.runtime.libraries import EVERY_BLOCK

BACKEND = TensorFlowBackend()
COUNTS = ("status", "site", "place", "steps", "executions", "active", "trips")
MODES = tuple(itertools.product(SCHEDULES, (False, True)))
SEVERAL = ("mixed_failures", "row_store")
"""Programs that together have stacks of arrays, stores and every kind of fault."""
OTHERS = ("step_limit", "structured_argument", "ackermann", "queens", "tak")
"""Structures, draws, and recursions that go many ways."""


def runs(name, schedule, jit):
    """A corpus program's batch, masked and gathered."""
    program = load(name)
    bound, compilation, captured = program.function.session.pipeline(program.arguments(BATCH), {})
    limits = {"max_depth": compilation.options.max_depth, "max_steps": compilation.options.max_steps}
    for compaction in (None, EVERY_BLOCK):
        machine = Machine(compilation.table, BACKEND, schedule=schedule, jit=jit, compaction=compaction, **limits)
        outcome = run_on(machine, compilation.parameters(), bound, captured.leaves)
        yield Run.of(compilation.table, outcome)


def assert_equal(name, schedule, jit):
    """The same results, faults and counts; never more rows."""
    masked, gathered = runs(name, schedule, jit)
    for count in COUNTS:
        expected, actual = (np.asarray(getattr(run.outcome, count)) for run in (masked, gathered))
        np.testing.assert_array_equal(actual, expected, err_msg=count)
    assert [fault.render() for fault in gathered.errors] == [fault.render() for fault in masked.errors]
    for actual, expected in zip(leaves(gathered.value), leaves(masked.value), strict=True):
        assert_close(actual, expected, np.asarray(expected).dtype.name)
    executions, active, rows = (np.asarray(getattr(gathered.outcome, c)) for c in ("executions", "active", "rows"))
    np.testing.assert_array_equal(np.asarray(masked.outcome.rows), executions * BATCH)
    assert np.all((active <= rows) & (rows <= executions * BATCH) & (rows >= EVERY_BLOCK.rows * executions))


@pytest.mark.parametrize(
    ("schedule", "name"),
    [
        *every_second(["earliest", "sweep"], SEVERAL),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in itertools.product(["earliest", "sweep"], OTHERS)),
    ],
)
def test_several_programs_as_a_graph(name, schedule):
    """Rows that are left over must not make operations raise."""
    assert_equal(name, schedule, jit=False)


@pytest.mark.parametrize(
    "name",
    ["row_store", *(pytest.param(each, marks=pytest.mark.slow) for each in ("ackermann", "mixed_failures", "queens"))],
)
def test_several_programs_under_xla(name):
    """The same compiled."""
    assert_equal(name, "auto", jit=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), list(zip(NAMES, itertools.cycle(MODES), strict=False)), ids=str)
def test_the_whole_corpus(name, mode):
    """Every program, the modes taken in turn."""
    assert_equal(name, *mode)


WEIGHTS = tf.constant(np.linalg.qr(np.random.default_rng(0).normal(size=(512, 512)))[0], tf.float32)


@pcbatch.autobatch
def visits(x, first):
    """Each lane goes through the product at a turn of its own."""
    for turn in range(64):
        if turn == first:
            x = tf.linalg.matvec(WEIGHTS, x)
    return x


def test_a_dear_block_runs_on_few_rows_unless_deterministic():
    """64 lanes that come one by one ("sweep" lets none wait) compute far fewer rows; the results are the same."""
    sweep = visits.options(schedule="sweep")
    x = tf.constant(np.random.default_rng(1).normal(size=(64, 512)), tf.float32)
    run = sweep.run(x, tf.range(64))
    fixed = sweep.options(deterministic=True).run(x, tf.range(64))
    np.testing.assert_allclose(run.value, fixed.value, rtol=1e-4, atol=1e-5)
    expensive = max(
        run.executions, key=lambda label: run.utilization.executed[label] != fixed.utilization.executed[label]
    )
    assert fixed.utilization.executed[expensive] == 64 * fixed.executions[expensive]
    assert run.utilization.executed[expensive] <= 32 * run.executions[expensive]


def test_deterministic_results_do_not_depend_on_who_waits():
    """Bit for bit, whichever other lanes are at the product at the same time."""
    x = tf.constant(np.random.default_rng(2).normal(size=(64, 512)), tf.float32)
    fixed = visits.options(deterministic=True)
    alone, together = fixed(x, tf.range(64)), fixed(x, tf.zeros(64, tf.int32))
    np.testing.assert_array_equal(alone, together)
