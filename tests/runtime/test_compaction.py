"""Compaction: gathered execution against masked execution, over the corpus with every block declared expensive."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function.executing import arrays_of
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
    options = {"max_depth": compilation.options.max_depth, "max_steps": compilation.options.max_steps}
    for compaction in (None, EVERY_BLOCK):
        machine = Machine(compilation.table, BACKEND, schedule=schedule, jit=jit, compaction=compaction, **options)
        outcome = machine.run(*arrays_of(machine, compilation.parameters(), bound, captured.leaves), BATCH)
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


def test_a_dear_block_runs_on_few_rows():
    """64 lanes that come one by one ("sweep" lets none wait) compute a chunk each time, not a row for every lane."""
    sweep = visits.options(schedule="sweep")
    x = tf.constant(np.random.default_rng(1).normal(size=(64, 512)), tf.float32)
    run, together = sweep.run(x, tf.range(64)), sweep.run(x, tf.zeros(64, tf.int32))
    np.testing.assert_allclose(run.value, together.value, rtol=1e-4, atol=1e-5)
    executed = [run.utilization.executed, together.utilization.executed]
    assert 64 * 8 in executed[0].values()
    assert {64 * 8, 64 * 64} & {*executed[1].values()} == {64 * 64}


WIDE, NARROW = (tf.random.stateless_normal(shape, [1, 2]) / 5 for shape in ([10, 600], [10, 10]))


@pcbatch.autobatch(form="lockstep", deterministic=True)
def rounding(x, y, n):
    """Products, cheap ones too, sums and functions of single numbers, in turns that differ by lane."""
    while n > 0:
        if n % 3 == 0:
            x = tf.tanh(tf.linalg.matvec(NARROW, x) + tf.math.log1p(tf.abs(x)))
        elif n % 3 == 1:
            x = x + tf.reduce_logsumexp(tf.linalg.matvec(WIDE, x, transpose_a=True)) / 9.0
        else:
            y = tf.math.log1p(tf.exp(tf.sin(y) * y)) + tf.reduce_sum(x * x)
        n = n - 1
    return x, y


@pcbatch.autobatch(deterministic=True)
def straight(x):
    """One block, which would run without the machine."""
    return tf.linalg.matvec(WIDE, tf.sin(tf.linalg.matvec(WIDE, x, transpose_a=True)))


@pytest.mark.parametrize(
    ("jit", "schedule"),
    [(False, "sweep"), *(pytest.param(True, each, marks=pytest.mark.slow) for each in ("auto", "switch"))],
)
def test_deterministic_bits_do_not_depend_on_the_batch(jit, schedule):
    """Alone, beside others, in another order."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(200, 10)).astype(np.float32), rng.normal(size=200).astype(np.float32)
    n = rng.integers(0, 30, 200).astype(np.int32)
    fixed = rounding.options(jit=jit, schedule=schedule)
    expected = fixed(x, y, n)
    for chosen in (np.arange(7, 8), np.arange(3), rng.permutation(200)[:50]):
        for actual, every in zip(fixed(x[chosen], y[chosen], n[chosen]), expected, strict=True):
            np.testing.assert_array_equal(actual, every.numpy()[chosen])


def test_deterministic_bits_of_one_block():
    x = np.random.default_rng(3).normal(size=(100, 10)).astype(np.float32)
    for lanes in (1, 3, 33):
        np.testing.assert_array_equal(straight(x[:lanes]), straight(x)[:lanes])


def test_a_batch_of_no_lanes_in_chunks():
    """No rows of it can be computed, and no chunk be filled up."""
    none = np.zeros([0, 10], np.float32)
    assert rounding.options(jit=False)(none, none[:, 0], np.zeros(0, np.int32))[0].shape[0] == 0


@pytest.mark.slow
def test_deterministic_bits_where_the_number_of_lanes_is_not_known():
    """Within a caller's function of a batch of any size."""
    x = np.random.default_rng(4).normal(size=(40, 10)).astype(np.float32)
    n = np.arange(40, dtype=np.int32) % 9
    caller = tf.function(
        lambda x, n: rounding(x, x[:, 0], n)[0],
        input_signature=[tf.TensorSpec([None, 10]), tf.TensorSpec([None], tf.int32)],
    )
    np.testing.assert_array_equal(caller(x[:11], n[:11]), caller(x, n)[:11])
    np.testing.assert_array_equal(caller(x, n), rounding(x, x[:, 0], n)[0])
