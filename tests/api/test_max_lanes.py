"""`max_lanes`: at most so many lanes at a time, however many examples; results, errors and steps by example."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from tests.api import long_programs


@pytest.fixture(scope="module")
def refilled():
    @pcbatch.autobatch(form="lockstep", max_lanes=4, jit=False)
    def collatz(n):
        steps = 0
        while n != 1:
            assert n < 5000, f"{n} is too large"
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps, float(n) * 0.5

    return collatz


def assert_equal(value, wanted):
    for leaf, other in zip(value, wanted, strict=True):
        np.testing.assert_array_equal(leaf, other)


def numbers(count):
    return np.arange(1, count + 1, dtype=np.int32)


@pytest.mark.parametrize("count", [7, 5, 0, 27])
def test_each_example_gives_what_it_gives_in_one_batch(refilled, count):
    n = numbers(count)
    run, whole = refilled.run(n), refilled.options(max_lanes=None).run(n)
    np.testing.assert_array_equal(run.status, whole.status)
    np.testing.assert_array_equal(run.lane_steps, whole.lane_steps)
    assert [(e.lane, e.message, e.span) for e in run.errors] == [(e.lane, e.message, e.span) for e in whole.errors]
    assert (count == 27) == bool(run.errors), "27 rises to 9232"
    assert_equal(run.value, whole.value)
    assert run.utilization.active == whole.utilization.active


def test_one_program_for_many_numbers_of_examples(refilled):
    function = refilled.options(max_lanes=8, jit=True)
    for count in (8, 3, 5, 7, 8, 6, 4):
        np.testing.assert_array_equal(function(numbers(count))[0], refilled(numbers(count))[0])
    assert function.stats().compilations == 1


@pytest.mark.slow
def test_in_a_callers_graph(refilled):
    count = 11
    refilled = refilled.options(jit=True)
    wanted = refilled(numbers(count))[0].numpy()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def plain(n):
        return refilled(n)[0]

    @tf.function(jit_compile=True)
    def compiled(n):
        return refilled.run(n).value[0]

    np.testing.assert_array_equal(plain(numbers(count)), wanted)
    np.testing.assert_array_equal(compiled(numbers(count)), wanted)


def test_random_numbers_are_the_examples_own():
    @pcbatch.autobatch(form="lockstep", max_lanes=3, jit=False)
    def tries(key):
        count = 0
        while True:
            key, now = pcbatch.random.split(key)
            count += 1
            if pcbatch.random.uniform(now) < 0.3:
                return count

    keys = pcbatch.random.keys(5, 10)
    np.testing.assert_array_equal(tries(keys), tries.options(max_lanes=None)(keys))


def test_a_run_in_slices_is_saved_and_goes_on_with_other_lanes(tmp_path):
    """The pool is the file's; what `max_lanes` says now is for new runs."""
    function = long_programs.depth.options(max_lanes=3, jit=False, progress=True)
    arguments = long_programs.BATCHES["depth"]
    run = function.run(*arguments)
    assert_equal(run.value, long_programs.depth.options(jit=False).run(*arguments).value)
    run.save(tmp_path / "run.npz")
    again = long_programs.depth.options(jit=False, resume=tmp_path / "run.npz").run()
    assert_equal(again.value, run.value)
