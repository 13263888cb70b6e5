"""Which function a name means: resolved at the first call, from the values that names have then."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import CompileError

BATCH = np.array([3, 7, 4, 5], np.int32)


def value(tensor):
    return np.asarray(tensor).tolist()


def slow(n):
    if n <= 1:
        return n
    return slow(n - 1) + slow(n - 2)


def test_a_plain_function_made_batched_calls_itself_batched():
    """Inside `slow` the name still means the plain function; its code and closure are those of `fast`."""
    fast = pcbatch.autobatch(slow, jit=False)
    assert value(fast(BATCH)) == [slow(n) for n in BATCH.tolist()]
    assert "call slow(" in fast.ir("cfg", BATCH)


def test_a_plain_function_is_its_batched_twin_wherever_the_program_knows_one():
    """Here `slow` is met before `fast`; the program is linked once, not anew at every call."""
    fast = pcbatch.autobatch(slow, jit=False)

    @pcbatch.autobatch(jit=False)
    def twice(n):
        return slow(n) + fast(n)

    for _ in range(2):
        assert value(twice(BATCH)) == [2 * slow(n) for n in BATCH.tolist()]
    assert twice.stats().compilations == 1
    assert "call slow(" in twice.ir("cfg", BATCH)


@pcbatch.autobatch(jit=False)
def even(n):
    return True if n == 0 else odd(n - 1)


@pcbatch.autobatch(jit=False)
def odd(n):
    return False if n == 0 else even(n - 1)


def test_functions_may_call_what_is_defined_below():
    assert value(even(BATCH)) == [False, False, True, False]
    assert value(odd(BATCH)) == [True, True, False, True]


def test_local_functions_that_call_each_other():
    @pcbatch.autobatch(jit=False)
    def down(n):
        return n if n <= 0 else up(n - 3)

    @pcbatch.autobatch(jit=False)
    def up(n):
        return down(n + 1)

    assert value(down(BATCH)) == [-1, -1, 0, -1]


def makers(step):
    """One source, as many functions as there are steps."""

    @pcbatch.autobatch(jit=False)
    def count(n):
        if n <= 0:
            return 0
        return 1 + count(n - step)

    return count


def test_two_closures_of_one_source_are_two_functions():
    ones, threes = makers(1), makers(3)
    assert value(ones(BATCH)) == [3, 7, 4, 5]
    assert value(threes(BATCH)) == [1, 3, 2, 2]

    @pcbatch.autobatch(jit=False)
    def both(n):
        return ones(n), threes(n)

    assert [value(each) for each in both(BATCH)] == [[3, 7, 4, 5], [1, 3, 2, 2]]


def test_a_name_that_is_bound_anew_is_linked_anew():
    @pcbatch.autobatch(jit=False)
    def up(n):
        return n + 1

    @pcbatch.autobatch(jit=False)
    def down(n):
        return n - 1

    step = up

    @pcbatch.autobatch(jit=False)
    def stepped(n):
        return step(n) * 10

    assert value(stepped(BATCH)) == [40, 80, 50, 60]
    step = down
    assert value(stepped(BATCH)) == [20, 60, 30, 40]


def test_a_batched_function_that_becomes_a_helper_and_back():
    """A plain function under the same name is traced as a part of its caller; the name may change sides."""

    @pcbatch.autobatch(jit=False)
    def step(n):
        return n + 1

    @pcbatch.autobatch(jit=False)
    def stepped(n):
        return step(n) * 10

    batched = step
    assert value(stepped(BATCH)) == [40, 80, 50, 60]
    step = tf.negative
    assert value(stepped(BATCH)) == [-30, -70, -40, -50]
    step = batched
    assert value(stepped(BATCH)) == [40, 80, 50, 60]


def test_the_entrys_options_govern_its_callees():
    @pcbatch.autobatch(jit=False, max_depth=1)
    def shallow(n):
        return 0 if n <= 0 else 1 + shallow(n - 1)

    @pcbatch.autobatch(jit=False, max_depth=20)
    def deep(n):
        return shallow(n) + 0

    assert value(deep(BATCH)) == BATCH.tolist()
    assert shallow.run(BATCH).status.tolist() == [pcbatch.LaneStatus.MAX_DEPTH] * 4


def test_a_name_that_means_nothing_yet():
    @pcbatch.autobatch(jit=False)
    def caller(n):
        return later(n) + 1  # noqa: F821

    with pytest.raises(CompileError, match="PCB208"):
        caller(BATCH)


# -- batched functions in other places -----------------------------------------------------------------------


@pcbatch.autobatch(jit=False)
def total(xs):
    return tf.reduce_sum(xs)


def test_from_a_helper_of_another_batched_function_it_is_called_whatever_the_helper_is_found_by():
    def helper(xs):
        return total(xs)

    @pcbatch.autobatch(jit=False)
    def outer(xs):
        return helper(xs) + 1.0

    @pcbatch.autobatch(jit=False)
    def hidden(xs):
        return [helper][0](xs) + 1.0

    xs = np.ones((2, 3), np.float32)
    for function in (outer, hidden):
        assert value(function(xs)) == [4.0, 4.0]
        assert value(function.single(xs[0])) == 4.0
        assert "call total(" in function.ir("cfg", xs)
    assert value(total(xs)) == [3.0, 3.0]


@pytest.mark.parametrize("over", [tf.vectorized_map, tf.map_fn])
def test_inside_tensorflows_own_maps_it_runs_a_batch_in_each_turn(over):
    values = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    assert value(over(total, values)) == values.sum(-1).tolist()
