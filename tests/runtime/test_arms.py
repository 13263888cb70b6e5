"""`tf.cond` in a Python loop under XLA: lanes take different arms, and what the other arm computes leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.errors import PrimitiveError
from pcbatch.runtime.backends.tensorflow.expansion import Expansion


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


def test_without_it_xla_refuses(monkeypatch):
    """Sabotage: nothing is written out."""
    monkeypatch.setattr(Expansion, "_expand", lambda self, operation: None)
    with pytest.raises(PrimitiveError, match="PCB440"):
        looped.options(in_axes={"k": None}, name="not_written_out")(X, N, tf.constant(1))


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
