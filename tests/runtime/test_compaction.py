"""Compaction: gathered execution against masked execution, over the corpus with every block declared dear."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import pcbatch
from pcbatch.function.executing import run_on
from pcbatch.runtime.backends.tensorflow import TensorFlowBackend
from pcbatch.runtime.costs.compaction import Compaction
from pcbatch.runtime.machine.machine import Machine
from pcbatch.runtime.machine.rows import Rows
from pcbatch.runtime.report.run import Run
from pcbatch.runtime.schedules import SCHEDULES
from tests.harness import BATCH, NAMES, assert_close, leaves, load
from tests.pairwise import every_second
from tests.runtime import tables

BACKEND = TensorFlowBackend()
EVERY_BLOCK = Compaction(floor=2, most=2, multiple=1, fixed=0.0, scale=0.0)
"""Every block is dear: at 17 lanes it runs at 3, 9 or 17, where lanes wait for each other at 2, 5 or 17."""
COUNTS = ("status", "site", "place", "steps", "executions", "active", "trips")
MODES = tuple(itertools.product(SCHEDULES, (False, True)))
SEVERAL = ("ackermann", "mixed_failures", "queens", "row_store", "step_limit", "structured_argument", "tak")
"""Programs that together have stacks of arrays, stores, every kind of fault, structures and draws."""


def runs(name, schedule, jit):
    """A corpus program's batch, masked and gathered."""
    program = load(name)
    bound, compilation, captured = program.function.compiler.compilation(program.arguments(BATCH), {})
    limits = {"max_depth": compilation.options.max_depth, "max_steps": compilation.options.max_steps}
    for compaction in (None, EVERY_BLOCK):
        machine = Machine(compilation.table, BACKEND, schedule=schedule, jit=jit, compaction=compaction, **limits)
        outcome = run_on(machine, BACKEND, compilation._parameters(), bound, captured.values)
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
    assert np.all((active <= rows) & (rows <= executions * BATCH) & (rows >= EVERY_BLOCK.floor * executions))


@pytest.mark.parametrize(("schedule", "name"), every_second(["earliest", "sweep"], SEVERAL))
def test_several_programs_as_a_graph(name, schedule):
    """Rows that are left over must not make operations raise."""
    assert_equal(name, schedule, jit=False)


@pytest.mark.parametrize("name", ["mixed_failures", "ackermann", pytest.param("queens", marks=pytest.mark.slow)])
def test_several_programs_under_xla(name):
    """The same compiled."""
    assert_equal(name, "auto", jit=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), list(zip(NAMES, itertools.cycle(MODES), strict=False)), ids=str)
def test_the_whole_corpus(name, mode):
    """Every program, the modes taken in turn."""
    assert_equal(name, *mode)


def test_rows_are_counted():
    """By hand: 8 lanes store 0, 1, 2, 3, 4, 4, 4, 4 times; blocks run at 8, 4 or 2 rows."""
    machine = Machine(tables.reverse(), BACKEND, schedule="sweep", jit=False, compaction=EVERY_BLOCK)
    count = np.minimum(np.arange(8, dtype=np.int32), 4)
    outcome = machine.run([np.zeros((8, 5), np.float32), count, np.full(8, 4, np.int32)], [], 8)
    assert outcome.executions.numpy().tolist() == [1, 5, 4, 5]
    assert outcome.active.numpy().tolist() == [8, 8 + 7 + 6 + 5 + 4, 7 + 6 + 5 + 4, 1 + 1 + 1 + 1 + 4]
    assert outcome.rows.numpy().tolist() == [8, 8 + 8 + 8 + 8 + 4, 8 + 8 + 8 + 4, 2 + 2 + 2 + 2 + 4]


def test_sizes():
    """Eighths and halves while each saves enough more than the last, down to the floor."""
    compaction = Compaction(floor=4, most=4, fixed=1000.0)
    assert compaction._sizes(10.0, 0.0, 64) == (8,)
    assert compaction._sizes(100.0, 0.0, 64) == (4, 8, 16, 32)
    assert compaction._sizes(1e6, 0.0, 64) == (4, 8, 16, 32)
    assert compaction._sizes(1e6, 0.0, 512) == (4, 8, 64, 256)
    assert compaction._sizes(1e6, 0.0, 17) == (4, 8, 12)
    assert Compaction(multiple=1, fixed=1000.0)._sizes(1e6, 0.0, 17) == (5, 9)


def test_sizes_are_not_lost_beside_a_dear_block():
    """What a size saves is compared with what the dearest block costs."""
    compaction = Compaction(floor=4, most=4, fixed=1000.0)
    assert compaction._sizes(100.0, 0.0, 64, 0.02 * 64 * 100.0) == (4, 8, 16, 32)
    assert compaction._sizes(100.0, 0.0, 64, 0.02 * 64 * 4_000.0) == (8,)
    assert compaction._sizes(100.0, 0.0, 64, 0.02 * 64 * 10_000.0) == ()


def test_some_blocks_run_on_all_lanes_only():
    """Cheap ones, those with much to move, batches of one lane; where lanes wait for each other there are quarters."""
    compaction = Compaction(fixed=1000.0)
    assert compaction._sizes(1.0, 0.0, 64) == ()
    assert compaction._sizes(100.0, 1e6, 64) == ()
    assert compaction._sizes(1e6, 0.0, 1) == ()
    assert compaction._sizes(100.0, 0.0, 64, waits=True) == ()
    assert compaction._sizes(800.0, 0.0, 64, waits=True) == (16,)
    assert compaction._sizes(4000.0, 0.0, 64, waits=True) == (4, 16)
    assert compaction._sizes(4000.0, 0.0, 64, 0.02 * 64 * 4000.0, waits=True) == (16,)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 40))
def test_compact(mask, size):
    """The first lanes of the mask in order, then the first again."""
    lanes = np.flatnonzero(mask)
    rows = BACKEND.compact(tf.constant(mask), size).numpy()
    if len(lanes):
        np.testing.assert_array_equal(rows, [*lanes[:size], *[lanes[0]] * (size - len(lanes))])
    assert rows.shape == (size,)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 12), st.data())
def test_rows_go_back_to_their_lanes(mask, size, data):
    """Whole rows and numbers."""
    rows = Rows.gathered(BACKEND, tf.constant(mask), size)
    writing = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size))) & rows.mask.numpy()
    pairs, numbers = np.zeros((len(mask), 2), np.float32), np.zeros(len(mask), np.float32)
    arrays, masks = [tf.constant(pairs), tf.constant(numbers)], [tf.constant(writing)] * 2
    new = np.arange(2 * size, dtype=np.float32).reshape(size, 2) + 1
    for row in np.flatnonzero(writing):
        pairs[rows.lanes[row]], numbers[rows.lanes[row]] = new[row], 7
    for found, expected in zip(
        rows.put_each(arrays, masks, [tf.constant(new), tf.constant(7.0)]), (pairs, numbers), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_gathered_stores_and_loads(data):
    """`load` and `masked_store` with lanes do what NumPy does row by row."""
    lanes, rows = 6, data.draw(st.permutations(range(6)))[: data.draw(st.integers(1, 6))]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    place = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))), np.int32)
    array = np.arange(lanes * 4, dtype=np.float32).reshape(lanes, 4)
    value = -np.arange(1, len(rows) + 1, dtype=np.float32)
    expected = array.copy()
    for row, lane in enumerate(rows):
        if mask[row]:
            expected[lane, place[row]] = value[row]
    given_rows = tf.constant(rows, tf.int32)
    stored = BACKEND.masked_store(
        tf.constant(array), [tf.constant(place)], tf.constant(mask), tf.constant(value), given_rows
    )
    np.testing.assert_array_equal(stored, expected)
    np.testing.assert_array_equal(
        BACKEND.load(tf.constant(array), [tf.constant(place)], given_rows), array[rows, place]
    )


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
    dear = max(run.executions, key=lambda label: run.utilization.executed[label] != fixed.utilization.executed[label])
    assert fixed.utilization.executed[dear] == 64 * fixed.executions[dear]
    assert run.utilization.executed[dear] <= 32 * run.executions[dear]


def test_deterministic_results_do_not_depend_on_who_waits():
    """Bit for bit, whichever other lanes are at the product at the same time."""
    x = tf.constant(np.random.default_rng(2).normal(size=(64, 512)), tf.float32)
    fixed = visits.options(deterministic=True)
    alone, together = fixed(x, tf.range(64)), fixed(x, tf.zeros(64, tf.int32))
    np.testing.assert_array_equal(alone, together)
