"""`pcbatch.map` in a batch and in one example: counts that differ by lane, any number of elements, what is refused."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import UsageError

XS = np.array([[1, 2, 0], [4, 0, 0], [0, 0, 0], [5, 6, 7]], np.int32)
COUNTS = np.array([2, 1, 0, 3], np.int32)


@pcbatch.autobatch(jit=False)
def shares(x, turn):
    """Fails where it is called for 0; gives a number that is weak in one arm, and an array."""
    if turn > 0:
        return 12 // x, tf.fill([2], 1.5) * tf.cast(x, tf.float32)
    return 1, tf.zeros([2])


@pcbatch.autobatch(jit=False)
def counted(xs, n):
    whole = pcbatch.map(lambda x: shares(x, 1), xs, count=n)
    return {"whole": whole, "twice": pcbatch.map(lambda x: [2 * x], xs, count=n), "n": n}


@pytest.mark.parametrize(
    "options", [{}, {"backend": "reference"}, pytest.param({"fork": True}, marks=pytest.mark.slow)]
)
def test_rows_beyond_the_count_are_zeros_and_never_computed(options):
    found = counted.options(**options)(XS, COUNTS)
    for lane in range(len(XS)):
        one = counted.single(XS[lane], COUNTS[lane])
        for value, expected in zip(tf.nest.flatten(found), tf.nest.flatten(one), strict=True):
            np.testing.assert_array_equal(value[lane], expected)
            assert value.dtype == expected.dtype
    assert type(one["whole"]) is type(found["whole"]) is tuple
    np.testing.assert_array_equal(found["whole"][0], [[12, 6, 0], [3, 0, 0], [0, 0, 0], [2, 2, 1]])


@pytest.mark.parametrize("count", [-1, 4])
def test_a_count_that_is_none_fails_the_lane(count):
    run = counted.run(XS[:2], [count, 1])
    (error,) = run.errors
    assert (error.lane, error.message) == (0, f"ValueError: count={count} of 3 elements")
    with pytest.raises(ValueError, match=f"^count={count} of 3 elements$"):
        counted.single(XS[0], count)


def test_a_call_that_fails_fails_its_lane_unless_it_is_beyond_the_count():
    run = counted.run(XS, [2, 2, 0, 3])
    assert [error.lane for error in run.errors] == [1]


@pcbatch.autobatch(jit=False)
def many(xs):
    return pcbatch.map(lambda x: shares(x, x % 2), xs), pcbatch.map(lambda k: k % 5, range(100, 0, -1))


def test_any_number_of_elements():
    """Its turns are no steps, as they are not where calls are written out."""
    xs = np.arange(1, 201, dtype=np.int32).reshape(2, 100)
    run = many.run(xs)
    np.testing.assert_array_equal(run.lane_steps, [100, 100])
    for lane in range(2):
        for value, expected in zip(tf.nest.flatten(run.value), tf.nest.flatten(many.single(xs[lane])), strict=True):
            np.testing.assert_array_equal(value[lane], expected)


@pytest.mark.slow
def test_calls_of_many_elements_are_forked_some_at_a_time():
    run = many.options(fork=True).run(np.ones((2, 100), np.int32))
    assert "200 calls were forked" in run.profile().notes[0]
    assert "16 of these 100 calls are made at a time" in "\n".join(run.profile().notes)
    np.testing.assert_array_equal(run.value[0][0], np.full((2, 100), 12))
    np.testing.assert_array_equal(run.lane_steps, [100, 100])


@pcbatch.autobatch(jit=False)
def inner(xs, n):
    total = 0
    for k in range(2):
        total += sum(pcbatch.map(lambda x: x + k, xs, count=n))  # noqa: B023  # called at once
    return total


@pcbatch.autobatch(jit=False)
def outer(xs, n):
    return inner(xs, n) + inner(2 * xs, n - 1) if n > 0 else pcbatch.map(lambda x: x, xs, count=0)[0]


def test_counts_in_loops_arms_and_callees():
    found = outer(XS, COUNTS)
    np.testing.assert_array_equal(found, [outer.single(*each) for each in zip(XS, COUNTS, strict=True)])


def test_under_a_tape():
    @pcbatch.autobatch(jit=False)
    def squares(xs, n):
        return tf.reduce_sum(pcbatch.map(lambda x: x * x, xs, count=n))

    xs = tf.constant(XS, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(xs)
        total = tf.reduce_sum(squares(xs, COUNTS))
    expected = 2 * XS * (np.arange(3) < COUNTS[:, None])
    np.testing.assert_array_equal(tape.gradient(total, xs), expected)


class Pair(NamedTuple):
    low: int
    high: int


def test_structures_of_rows():
    @pcbatch.autobatch
    def pairs(xs, n):
        return pcbatch.map(lambda x: Pair(x, x), xs, count=n)

    found = pairs(XS, COUNTS)
    assert isinstance(found, Pair)
    np.testing.assert_array_equal(found.low, [pairs.single(*each).low for each in zip(XS, COUNTS, strict=True)])

    @pcbatch.autobatch
    def named(x):
        return pcbatch.map(lambda k: x, x, count=1)

    @pcbatch.autobatch
    def both(x):
        return named(x), named(tf.cast(x, tf.float32))

    ints, floats = both(XS)
    assert (ints.dtype, floats.dtype) == (tf.int32, tf.float32)
    np.testing.assert_array_equal(ints[:, 0], XS)
    np.testing.assert_array_equal(floats[:, 0], XS)


def test_in_plain_python():
    np.testing.assert_array_equal(pcbatch.map(lambda x, y: x + y, [1, 2, 3], [4, 5, 6], count=2), [5, 7, 0])
    with pytest.raises(UsageError, match="PCB556"):
        pcbatch.map(lambda x: x, [1, 2], count=0)
    with pytest.raises(ValueError, match="count=3 of 2 elements"):
        pcbatch.map(lambda x: x, [1, 2], count=3)
