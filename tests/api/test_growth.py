"""Stacks grow as lanes need them: nothing is lost, nothing is done twice, and `max_depth` is a limit, not a size."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import LaneStatus, UsageError
from pcbatch.function.precompiled import Precompiled
from pcbatch.ir.types import TensorType
from pcbatch.runtime.machine.state import DEFAULT_MAX_DEPTH, Limits
from tests.runtime.tables import fibonacci_of


@pcbatch.autobatch(form="lockstep")
def down(n):
    return 0 if n <= 0 else 1 + down(n - 1)


@pcbatch.autobatch(form="lockstep")
def visits(n, wide):
    """A walk down a lopsided tree: counts its calls and its loop turns, and carries an array across all of them."""
    calls, turns = 1, 0
    total = wide
    for _ in range(n % 3):
        turns += 1
    if n > 0:
        left, left_turns, total = visits(n - 1, total + 1.0)
        calls, turns = calls + left, turns + left_turns
    if n % 40 == 39:
        right, right_turns, total = visits(n % 5, total + wide)
        calls, turns = calls + right, turns + right_turns
    return calls, turns, total


def visits_of(n, wide):
    calls, turns, total = 1, n % 3, wide
    if n > 0:
        left, left_turns, total = visits_of(n - 1, total + 1.0)
        calls, turns = calls + left, turns + left_turns
    if n % 40 == 39:
        right, right_turns, total = visits_of(n % 5, total + wide)
        calls, turns = calls + right, turns + right_turns
    return calls, turns, total


def test_sizes():
    assert Limits.of(None, None).max_depth == DEFAULT_MAX_DEPTH
    assert Limits.of(None, None).sizes(32, 8192) == [128, 512, 2048, 8192]
    assert Limits.of(20_000, None).sizes(2048, 20_000) == [8192, 20_000]
    assert Limits.of(33, None).sizes(32, 34) == [34]
    small = Limits.of(7, None)
    assert (small.roomy, small.first_capacity, small.largest_capacity) == (True, 8, 8)


@pytest.mark.parametrize(("schedule", "jit"), [("earliest", False), ("sweep", True)])
def test_nothing_is_lost_and_nothing_done_twice(schedule, jit):
    """Each lane counts its own calls and turns; the machine counts what it ran for each lane, grown or not."""
    n = np.array([3, 33, 130, 31, 32, 0, 128, 80], np.int32)
    wide = np.arange(24, dtype=np.float32).reshape(8, 3)
    function = visits.options(schedule=schedule, jit=jit)
    grown = function.run(n, wide)
    assert function.stats().stack_entries == 513
    roomy = function.run(n, wide)  # the second run has room from the start
    assert function.stats().compilations == (3 if jit else 1)
    for run in (grown, roomy):
        calls, turns, total = run.value
        truth = [visits_of(int(i), row) for i, row in zip(n, wide, strict=True)]
        np.testing.assert_array_equal(calls, [t[0] for t in truth])
        np.testing.assert_array_equal(turns, [t[1] for t in truth])
        np.testing.assert_array_equal(total, [t[2] for t in truth])
        np.testing.assert_array_equal(run.lane_steps, calls - 1 + turns)
    assert grown.utilization.active == roomy.utilization.active


@pytest.mark.parametrize("schedule", ["earliest", "sweep"])
def test_lanes_that_pause_together_run_as_often_as_with_room(schedule):
    """No block runs once more because stacks grew, and there is no trip more."""
    n = np.full(3, 200, np.int32)
    function = down.options(jit=False, schedule=schedule)
    grown, roomy = function.run(n), function.run(n)
    assert grown.outcome.stack_entries == roomy.outcome.stack_entries == 513
    assert grown.executions == roomy.executions
    assert grown.trips == roomy.trips


@pytest.mark.parametrize("limit", [0, 1, 31, 32, 33, 127, 128, 129, 600])
@pytest.mark.parametrize("backend", ["tensorflow", "reference"])
def test_the_limit_is_exact_at_every_size(limit, backend):
    """A lane fails with its first call beyond `max_depth`, wherever that lies between the sizes of stacks."""
    n = np.array([limit, limit + 1, 0, limit // 2, limit + 700], np.int32)
    function = down.options(max_depth=limit, jit=False, backend=backend)
    run = function.run(n)
    failed = n > limit
    np.testing.assert_array_equal(run.status, np.where(failed, LaneStatus.MAX_DEPTH, LaneStatus.OK))
    np.testing.assert_array_equal(run.value, np.where(failed, 0, n))
    np.testing.assert_array_equal(run.lane_steps, np.minimum(n, limit))
    assert function.stats().stack_entries <= limit + 2


def test_the_default_limit_and_what_it_says():
    n = np.array([DEFAULT_MAX_DEPTH, DEFAULT_MAX_DEPTH + 1], np.int32)
    run = down.options(jit=False).run(n)
    assert run.status.tolist() == [LaneStatus.OK, LaneStatus.MAX_DEPTH]
    assert "more than max_depth calls deep (8192 unless max_depth=.. says more)" in run.errors[0].message


def test_few_compilations_and_then_none():
    """From 32 to 8192 four more than the first one; a second call, and a third of little depth, compile nothing."""
    function = down.options(schedule="earliest")
    function(np.array([3, 5], np.int32))
    assert (function.stats().compilations, function.stats().stack_entries) == (1, 33)
    deep = np.array([7000, 5], np.int32)
    assert function(deep).numpy().tolist() == [7000, 5]
    compiled = function.stats()
    assert (compiled.compilations, compiled.stack_entries) == (5, 8193)
    assert function(deep).numpy().tolist() == [7000, 5]
    assert function(deep % 10).numpy().tolist() == [0, 5]
    assert function.stats() == compiled


def test_what_a_recursion_without_end_needed_is_not_learnt():
    function = down.options(jit=False, max_depth=2000)
    assert function.run(np.array([4000, 3], np.int32)).status.tolist() == [LaneStatus.MAX_DEPTH, LaneStatus.OK]
    assert function.stats().stack_entries == 33
    function.run(np.array([100], np.int32))
    assert function.stats().stack_entries == 129


def test_programs_without_calls_have_no_stacks():
    @pcbatch.autobatch(jit=False)
    def halvings(n):
        turns = 0
        while n > 1:
            n, turns = n // 2, turns + 1
        return turns

    assert halvings(np.array([1, 1000], np.int32)).numpy().tolist() == [0, 9]
    assert halvings.stats().stack_entries == 0


@pytest.mark.parametrize("jit", [pytest.param(True, marks=pytest.mark.slow), False])
def test_inside_a_graph(jit):
    """In a plain `tf.function` stacks grow while the graph runs; one trace serves all sizes and numbers of lanes."""
    function = visits.options(jit=jit)
    inside = tf.function(
        lambda n, wide: function(n, wide),
        input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 3])],
        autograph=False,
    )
    wide = np.ones(3, np.float32)
    for depths in ([3, 0], [140, 7, 33]):
        values = inside(np.array(depths, np.int32), np.ones((len(depths), 3), np.float32))
        for lane, n in enumerate(depths):
            for leaf, truth in zip(values, visits_of(n, wide), strict=True):
                np.testing.assert_array_equal(leaf[lane], truth)
    assert function.stats().compilations == 1


def test_an_overflow_inside_a_graph_raises():
    function = down.options(jit=False, max_depth=130)
    inside = tf.function(lambda n: function(n), autograph=False)
    assert inside(tf.constant([130, 4])).numpy().tolist() == [130, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than max_depth calls deep"):
        inside(tf.constant([131, 4]))


def test_in_a_callers_xla_program_max_depth_is_the_size():
    n = tf.constant([100, 101])
    with pytest.raises(UsageError, match=r"PCB540.*max_depth"):
        tf.function(lambda n: down.run(n).value, jit_compile=True, autograph=False)(n)
    limited = down.options(max_depth=100)
    inside = tf.function(lambda n: (limited.run(n).value, limited.run(n).status), jit_compile=True, autograph=False)
    value, status = inside(n)
    assert value.numpy().tolist() == [100, 0]
    assert status.numpy().tolist() == [LaneStatus.OK, LaneStatus.MAX_DEPTH]


def test_compiled_modules_grow_too():
    n = np.array([70, 2], np.int32)
    compiled = Precompiled(down.pipeline(n).table, {"n": TensorType("int32")}, ["n"], jit=False)
    assert compiled(n).numpy().tolist() == [70, 2]


def test_check_compiles_what_a_call_needs():
    @pcbatch.autobatch(form="lockstep")
    def fibonacci(n):
        return 1 if n <= 1 else fibonacci(n - 2) + fibonacci(n - 1)

    n = np.array([3, 7], np.int32)
    fibonacci.check(n)
    assert fibonacci.stats().compilations == 1
    assert fibonacci(n).numpy().tolist() == [fibonacci_of(3), fibonacci_of(7)]
    assert fibonacci.stats().compilations == 1


def test_a_captured_layer_in_a_recursion_under_a_tape():
    """What a leg captures takes part in the gradient that is refused; a tape around the run does no harm."""
    layer = tf.keras.layers.Dense(3, use_bias=False, kernel_initializer="ones")
    layer.build([None, 3])

    def helper(x):
        return layer(x[None])[0]

    @pcbatch.autobatch(form="lockstep")
    def again(x, n):
        if n <= 0:
            return x
        return helper(again(x, n - 1))

    x = tf.ones((2, 3))
    with tf.GradientTape() as tape:
        y = again(x, np.array([1, 40], np.int32))
    np.testing.assert_allclose(y[0], [3.0] * 3)
    np.testing.assert_allclose(y[1], [3.0**40] * 3, rtol=1e-5)
    found = tape.gradient(y, layer.kernel.value)
    with tf.GradientTape() as tape:
        expected = tf.stack([again.single(x[0], 1), again.single(x[1], 40)])
    np.testing.assert_allclose(found, tape.gradient(expected, layer.kernel.value), rtol=1e-5)
