"""Gradients through forked calls in a caller's graph and in parts; where calls are made in sequence, and why."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.function import executing
from pcbatch.runtime.adjoint.forks.in_graphs import InGraphs
from pcbatch.runtime.adjoint.reverse import Forks
from pcbatch.runtime.machine.forked import IN_GRAPH, IN_XLA
from pcbatch.runtime.machine.pool_sizing import ForkFeedback
from tests.adjoint.forked_programs import CASES
from tests.adjoint.truth import assert_alike, batched, one_by_one

slow = pytest.mark.slow
A = tf.Variable(0.7, dtype=tf.float64)
B = tf.Variable([0.5, -1.25, 2.0], dtype=tf.float64)
"""Used within one arm alone."""
ROWS = tf.Variable([[0.5], [1.0], [-2.0], [0.25]], dtype=tf.float64)


@pcbatch.autobatch(fork=True, jit=False)
def grown(x, n):
    """Two calls, one of them under a condition; fails at 9, far down."""
    assert n != 9
    if n <= 0:
        return tf.sin(x) * A
    y = grown(x * 0.5, n - 1)
    if n % 2 == 0:
        y = y * B[1] + grown(x + 1 / (n % 2 - 1), n - 2) * tf.gather(ROWS, n % 4)[0]
    return y * x


X = tf.constant([0.5, -1.0, 2.0, 0.25, 1.5], tf.float64)
N = tf.constant([4, 0, 5, 11, 2], tf.int32)
SOURCES = (A, B, ROWS)


def slopes(function, x, n):
    """The gradients of a loss of examples that have not failed, in batches of any size."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        run = function.run(x, n)
        sound = tf.convert_to_tensor(run.status) == 0
        value = tf.reduce_sum(tf.where(sound, run.value**2, tf.zeros_like(run.value)))
    return tape.gradient(value, [x, *SOURCES])


def truth(x, n):
    return slopes(grown.options(backend="reference", jit=True), x, n)


@pytest.fixture
def described(monkeypatch):
    """How many runs have been forked in graphs."""
    found, run = [], InGraphs.run

    def counted(self, *args):
        found.append(args)
        return run(self, *args)

    monkeypatch.setattr(InGraphs, "run", counted)
    return found


@slow
def test_in_batches_of_every_size(described):
    """With an example that fails, with one alone, and with none."""
    signature = [tf.TensorSpec([None], tf.float64), tf.TensorSpec([None], tf.int32)]
    function = tf.function(lambda x, n: slopes(grown, x, n), input_signature=signature, autograph=False)
    for count in (5, 1, 0):
        found = function(X[:count], N[:count])
        assert isinstance(found[3], tf.IndexedSlices)
        if count:
            assert_alike(found, truth(X[:count], N[:count]))
        else:
            assert found[0].shape == (0,)
            assert not any(np.any(tf.convert_to_tensor(each)) for each in found)
    assert len(described) == 1


@slow
@pytest.mark.parametrize("tape", ["keep", "replay"])
@pytest.mark.parametrize("limit", [2**24, 1])
def test_with_lanes_that_become_more_and_with_none_to_spare(tape, limit, monkeypatch, described):
    monkeypatch.setattr(executing, "Forks", lambda *_: Forks(ForkFeedback(1), limit))
    function = grown.options(tape=tape, name=f"grown_{tape}_{limit}")
    inside = tf.function(lambda x, n: slopes(function, x, n), autograph=False)
    assert_alike(inside(X, N), truth(X, N))
    assert len(described) == 1


@slow
def test_compiled_and_twice_under_one_persistent_tape():
    function = grown.options(jit=True, name="grown_twice")
    sound = tf.constant([4, 0, 5, 3, 2], tf.int32)

    def both(function, x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            one = function(x, sound)
            other = function(one, sound - 1)
        return [
            *tape.gradient(tf.reduce_sum(other), [x, *SOURCES]),
            *tape.gradient(tf.reduce_sum(one * x), [x, *SOURCES]),
        ]

    expected = both(grown.options(backend="reference", jit=True), X)
    assert_alike(both(function, X), expected)
    assert_alike(tf.function(lambda x: both(function, x), autograph=False)(X), expected)


@slow
def test_a_tape_around_a_function(described):
    inside = tf.function(lambda x, n: grown.run(x, n).value, autograph=False)
    with tf.GradientTape() as tape:
        tape.watch(X)
        value = tf.reduce_sum(tf.where(N == 11, tf.zeros_like(X), inside(X, N)) ** 2)
    assert_alike(tape.gradient(value, [X, *SOURCES]), truth(X, N))
    assert described


@slow
@pytest.mark.parametrize("name", ["worded", "armed", "twice"])
def test_programs_in_a_function(name):
    function, arguments, variables = CASES[name]
    function = function.options(jit=False)
    inside = tf.function(lambda: batched(function, arguments, variables), autograph=False)
    assert_alike(inside(), one_by_one(function, arguments, variables))


@slow
def test_fit():
    """A model with a layer that forks learns what one does whose layer makes calls one after the other."""

    def trained(function):
        class Tree(tf.keras.layers.Layer):
            def build(self, _):
                self.scale = self.add_weight(shape=(), initializer=tf.keras.initializers.Constant(0.5), dtype="float64")

            def call(self, given):
                return function(given[0] * self.scale, tf.cast(given[1], tf.int32))

        x, n = tf.keras.Input((), dtype="float64"), tf.keras.Input((), dtype="int32")
        model = tf.keras.Model([x, n], Tree(dtype="float64")([x, n]))
        model.compile(tf.keras.optimizers.SGD(0.01), "mse", jit_compile=False)
        counts = np.array([4, 0, 5, 3, 2, 1, 6], np.int32)
        data = np.linspace(-1.0, 1.0, 7), counts
        history = model.fit(data, np.ones(7), batch_size=3, epochs=2, verbose=0, shuffle=False)
        return [*history.history["loss"], *(each.numpy() for each in model.trainable_variables)]

    np.testing.assert_allclose(trained(grown), trained(grown.options(fork=False)), rtol=1e-6)


@slow
def test_few_lanes_make_their_calls_in_sequence():
    function, arguments, variables = CASES["worded"]
    limited = function.options(jit=False, max_lanes=30)
    assert_alike(batched(limited, arguments, variables), one_by_one(function, arguments, variables))
    assert any("max_lanes=30" in each for each in pcbatch.explain(limited, *arguments).calls)


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


def test_forked_in_a_function(described):
    found = tf.function(lambda: gradient(told, X3, N3), autograph=False)()
    np.testing.assert_allclose(found, [slope(2), slope(3), slope(5)])
    assert len(described) == 1
    assert not told.stats().notes


@slow
def test_why_calls_are_made_one_after_the_other(described):
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
    assert not described
