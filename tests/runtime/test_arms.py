"""`tf.cond` in a Python loop under XLA: lanes take different arms, and what the other arm computes leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import random
from pcbatch.runtime.backends.tensorflow.function_inlining import Expansion


@pcbatch.autobatch(form="lockstep")
def looped(x, n, k):
    """One in another, a table looked up in, a division that the other arm may not do, one that all share, a choice."""
    table = tf.constant([1.0, 2.0, 3.0])
    while n > 0:
        x = tf.cond(
            x > 1.0,
            lambda: tf.cond(n > 2, lambda: x * 0.5, lambda: tf.gather(table, n) - x),  # noqa: B023
            lambda: tf.sqrt(tf.abs(x)) + tf.cast(tf.math.floordiv(7, n), tf.float32),  # noqa: B023
        )
        x = tf.cond(k > 0, lambda: x * 1.1, lambda: x)  # noqa: B023
        x = tf.switch_case(n % 4, [lambda: x + 0.5, lambda: tf.gather(table, (n - 1) % 3) * x, lambda: x])  # noqa: B023
        n = n - 1
    assert x > -100.0
    return x


@pcbatch.autobatch(form="lockstep")
def endless(x, n):
    """A loop that would not end for lanes that do not come to it."""
    while n > 0:
        x = tf.cond(
            x > 1.0,
            lambda: -x,  # noqa: B023
            lambda: tf.while_loop(lambda v: v < 1.5, lambda v: (v * tf.sign(v) * 2.0,), [x + 0.1])[0],  # noqa: B023
        )
        n = n - 1
    return x


X, N = np.array([0.5, 2.0, 3.0, 0.1, 300.0], np.float32), np.array([3, 0, 5, 2, 1], np.int32)


def single(function, lanes, *others):
    return [function.single(x, n, *others) for x, n in zip(X[:lanes], N[:lanes], strict=True)]


def test_lanes_take_different_arms():
    run = looped.options(in_axes={"k": None}).run(X, N, tf.constant(1))
    np.testing.assert_allclose(run.value[:4], single(looped, 4, 1), rtol=1e-6)
    assert [status == 0 for status in run.status] == [True] * 4 + [False]


@pytest.mark.slow
def test_what_cannot_be_written_out_runs_for_its_lanes_alone():
    np.testing.assert_allclose(endless(X, N), single(endless, 5), rtol=1e-6)


def test_without_it_lanes_run_one_after_another(monkeypatch):
    monkeypatch.setattr(Expansion, "_expand", lambda self, operation: None)
    run = looped.options(in_axes={"k": None}, name="not_written_out").run(X, N, tf.constant(1))
    np.testing.assert_allclose(run.value[:4], single(looped, 4, 1), rtol=1e-6)


@pcbatch.primitive(batched=lambda x: 100.0 * tf.ones_like(x))
def batched_otherwise(x):
    """A batched form that shows where it is taken."""
    return x + 1.0


@pcbatch.fallback
def doubled_until_ten(x):
    return tf.while_loop(lambda v: v < 10.0, lambda v: (2.0 * v,), [x])[0]


@pcbatch.autobatch(form="lockstep")
def with_rules_of_their_own(key, x):
    """Arms that call what has a rule of its own; a turn of the loop would not end for a lane below 0."""
    drawn = tf.cond(x > 1.0, lambda: random.poisson(key, x), lambda: 0)
    y = tf.cond(x > 0.2, lambda: batched_otherwise(x), lambda: x)
    y += tf.switch_case(drawn % 2, [lambda: batched_otherwise(x), lambda: -x])
    return drawn, y, tf.cond(x > 0.0, lambda: doubled_until_ten(x), lambda: 0.0)


def test_rules_of_their_own_hold_in_arms():
    keys, x = random.keys(3, 4), np.array([0.5, 2.0, -3.0, 12.0], np.float32)
    drawn, y, doubled = with_rules_of_their_own.options(output="numpy")(keys, x)
    for key, each, number, found in zip(keys, x, drawn, y, strict=True):
        assert number == (int(random.poisson(key, each)) if each > 1.0 else 0)
        assert found == (100.0 if each > 0.2 else each) + (-each if number % 2 else 100.0)
    assert doubled.tolist() == [16.0, 16.0, 0.0, 12.0]


@pcbatch.autobatch
def cases(x, n):
    """A number beyond the last arm is the last one's, below the first, too; one arm cannot be written out."""
    while n > 0:
        x, y = tf.switch_case(n - 2, [lambda: [tf.sin(x), x], lambda: [x * x, 1.0], lambda: [x, x + 1.0]])  # noqa: B023
        x = x + y
        n = n - 1
    return tf.switch_case(
        tf.cast(x, tf.int32),
        [lambda: x, lambda: tf.while_loop(lambda v: v < x, lambda v: (v * 2.0,), [x * 0.1 + 0.1])[0], lambda: -x],
    )


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_cases(jit):
    run = cases.options(jit=jit, form="lockstep").run(X[:4], N[:4])
    np.testing.assert_allclose(run.value, single(cases, 4), rtol=1e-6)
