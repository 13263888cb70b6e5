"""Gradients of functions that fork in a caller's graph: there calls are made in sequence, and notes say why."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.machine.forked import IN_GRAPH, IN_XLA
from tests.adjoint.forked_programs import CASES
from tests.adjoint.truth import assert_alike, batched, one_by_one

slow = pytest.mark.slow
MADE_IN_TURN = "this call and those behind it are made one after the other"


@slow
def test_few_lanes_make_their_calls_in_sequence():
    function, arguments, variables = CASES["worded"]
    limited = function.options(jit=False, max_lanes=30)
    assert_alike(batched(limited, arguments, variables), one_by_one(function, arguments, variables))
    few = told.options(max_lanes=8)
    assert [note.partition(": ")[2] for note in few.run(X3, N3).profile().notes] == [f"{MADE_IN_TURN}: max_lanes=8"]


@pcbatch.autobatch(fork=True, jit=False, max_depth=9)
def told(x, n):
    if n <= 0:
        return x
    return told(x * 0.5, n - 1) + told(x, n - 2)


def slope(n):
    return 1.0 if n <= 0 else slope(n - 1) * 0.5 + slope(n - 2)


def gradient(function, x, n):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.reduce_sum(function(x, n))
    return tape.gradient(value, x)


X3, N3 = tf.ones([3]), tf.constant([2, 3, 5])


def test_a_tape_inside_of_a_function():
    """And one around it; ordinary code goes on to fork."""
    function = told.options(name="told_in_a_function")
    expected = [slope(2), slope(3), slope(5)]
    np.testing.assert_allclose(tf.function(lambda: gradient(function, X3, N3), autograph=False)(), expected)
    assert IN_GRAPH in function.stats().notes
    inside = tf.function(lambda x: function(x, N3), autograph=False)
    np.testing.assert_allclose(gradient(lambda x, _: inside(x), X3, N3), expected)
    np.testing.assert_allclose(gradient(function, X3, N3), expected)
    assert "calls were forked" in function.run(X3, N3).profile().notes[0]


@slow
def test_why_calls_are_made_one_after_the_other():
    few = told.options(name="told in graphs")
    reasons = {IN_GRAPH, IN_XLA}
    with tf.GradientTape():  # of which it is nothing
        run = few.run(X3, N3)
    assert "calls were forked" in run.profile().notes[0]
    assert not reasons & {*few.stats().notes}
    tf.function(lambda: few(X3, N3), autograph=False).get_concrete_function()
    assert reasons & {*few.stats().notes} == {IN_GRAPH}
    tf.function(lambda: few.run(X3, N3).value, autograph=False, jit_compile=True).get_concrete_function()
    assert reasons <= {*few.stats().notes}
    assert reasons <= {*pcbatch.explain(few, X3, N3).calls}
