"""Variables and tensors that a gradient tape in a batched function knows: which they are, and where that ends."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import CompileError, UsageError
from pcbatch.commands.module_writer import compiled_module

X = np.array([[1.0, 2.0], [-1.0, 0.5]], np.float32)
W, U = tf.Variable([1.5, -0.5]), tf.Variable(2.0)
TABLE = tf.Variable(np.arange(12).reshape(6, 2).astype(np.float32))


def test_a_variable_is_read_anew_and_may_be_another_one():
    slope_of = {"w": tf.Variable([1.0, 2.0])}

    def squared(x):
        return tf.reduce_sum(slope_of["w"] * x) ** 2

    @pcbatch.autobatch(jit=False)
    def slope(x):
        with tf.GradientTape() as tape:
            y = squared(x)
        return tape.gradient(y, slope_of["w"])

    def agrees():
        expected = [slope.single(x) for x in X]
        np.testing.assert_allclose(slope(X), expected, rtol=1e-6)
        return slope.stats().compilations

    compilations = agrees()
    slope_of["w"].assign([-3.0, 0.5])
    assert agrees() == compilations  # a variable is changed without compiling
    slope_of["w"] = tf.Variable([5.0, 1.0])
    agrees()
    other = tf.Variable([7.0, 1.0])
    slope_of["w"] = other
    agrees()


def test_a_variable_that_only_the_body_reads_may_be_another_one():
    held = [tf.Variable(2.0)]

    @pcbatch.autobatch(jit=False)
    def scaled(x):
        with tf.GradientTape() as tape:
            y = held[0] * x
        return y, tape.gradient(y, held[0])

    for number in (2.0, 3.0):
        held[0] = tf.Variable(number)
        y, slope = scaled(X[:, 0])
        np.testing.assert_allclose(y, number * X[:, 0])
        np.testing.assert_allclose(slope, X[:, 0])


MODULE_TEXT = """
import pcbatch
import tensorflow as tf

w = tf.Variable([1.5, -0.5])
t = tf.constant([1.0, 2.0])

def helper(x):
    return tf.reduce_sum(w * t * x) ** 2

@pcbatch.autobatch(jit=False)
def slopes(x):
    with tf.GradientTape() as tape:
        tape.watch(t)
        y = helper(x) * w[0]
    return tape.gradient(y, [w, t])
"""


def test_a_variable_as_an_argument():
    """Where there is a tape it is refused: the array that is read from it is nothing that the tape knows."""

    def slope(x, w):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(w * x) ** 2
        return tape.gradient(y, w)

    @pcbatch.autobatch(in_axes=(0, {"a": None, "b": None}))
    def by_helper(x, w):
        return slope(x, w["a"]) * w["b"]

    @pcbatch.autobatch(jit=False)
    def by_default(x, w=W):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(w * x) ** 2
        return tape.gradient(y, [x, w], unconnected_gradients="zero")

    given = {"a": W, "b": tf.constant(2.0)}
    np.testing.assert_allclose(by_helper.single(X[0], given), 2.0 * slope(tf.constant(X[0]), W))
    for call in (
        lambda: by_helper(X, given),
        lambda: by_default(X),
        lambda: by_default.options(in_axes=(0, None))(X, W),
    ):
        with pytest.raises(UsageError, match=r"PCB518.* 'w' is a variable"):
            call()
    read = by_default.options(in_axes=(0, None))(X, tf.convert_to_tensor(W))
    np.testing.assert_array_equal(read[1], np.zeros_like(X))

    @pcbatch.autobatch(in_axes=(0, None), jit=False)
    def scaled(x, w):
        return x * w

    np.testing.assert_allclose(scaled(X, W), X * W)


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_compiled_ahead_of_time(tmp_path):
    path = tmp_path / "with_tape.py"
    path.write_text(MODULE_TEXT)
    module = load_module(path)
    expected = [tf.nest.flatten(module.slopes.single(x)) for x in X]
    written = tmp_path / "written.py"
    written.write_text(compiled_module(path, module.slopes, [X]))
    compiled = load_module(written)
    for change in (None, [2.0, 3.0], tf.Variable([2.0, 3.0])):
        if isinstance(change, list):
            compiled.w.assign(change)
            module.w.assign(change)
            expected = [tf.nest.flatten(module.slopes.single(x)) for x in X]
        elif change is not None:
            compiled.w = change
        for lane, singly in enumerate(expected):
            for got, wanted in zip(tf.nest.flatten(compiled.slopes(X)), singly, strict=True):
                np.testing.assert_allclose(got[lane], wanted, rtol=1e-5)


@pcbatch.autobatch
def of_parameter(x, w):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * x) ** 2
    return tape.gradient(y, w)


@pcbatch.autobatch
def passed_on(x):
    return of_parameter(x, W)


@pcbatch.autobatch
def renamed(x):
    w = W
    while x[0] < 10.0:
        x = x * 2.0
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * x)
    return tape.gradient(y, W)


@pcbatch.autobatch
def in_a_loop(x):
    total = tf.zeros_like(W)
    w = W
    while tf.reduce_sum(total) < x[0]:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(w * x)
        total = total + tape.gradient(y, w)
    return total


@pcbatch.autobatch
def chosen(x):
    w = W if x[0] > 0.0 else U * tf.ones_like(x)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * x)
    return tape.gradient(y, W)


@pcbatch.autobatch
def chosen_at_once(x):
    with tf.GradientTape() as tape:
        y = x[0] * (U if x[0] > 0.0 else x[1])
    return tape.gradient(y, U)


@pytest.mark.parametrize("function", [passed_on, renamed, in_a_loop], ids=lambda function: function.__name__)
def test_a_variable_is_itself_wherever_it_goes(function):
    positive = np.abs(X)
    np.testing.assert_allclose(function(positive), [function.single(x) for x in positive], rtol=1e-6)


@pytest.mark.parametrize("function", [chosen, chosen_at_once], ids=lambda function: function.__name__)
def test_one_of_two_of_which_one_is_a_variable_is_refused(function):
    """A tape behind it would take the value for another tensor than the variable."""
    with pytest.raises(CompileError) as error:
        function.check(X)
    assert {each.code for each in error.value.diagnostics} == {"PCB415"}


def test_a_variable_stays_one_in_a_loop_that_is_written_out():
    @pcbatch.autobatch(jit=False)
    def twice(x):
        total = tf.zeros_like(W)
        for w in (W, W):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(w * x)
            total = total + tape.gradient(y, w)
        return total

    np.testing.assert_allclose(twice(X), 2.0 * np.asarray(X))


def test_the_value_of_a_variable_does():
    @pcbatch.autobatch(jit=False)
    def descent(x):
        w = tf.identity(W)
        for row in TABLE:
            with tf.GradientTape() as tape:
                tape.watch(w)
                y = tf.reduce_sum(w * x * W) ** 2 + tf.reduce_sum(w * row)
            w = w - 0.01 * tape.gradient(y, w)
        return w

    np.testing.assert_allclose(descent(X), [descent.single(x) for x in X], rtol=1e-5)


@pcbatch.autobatch(jit=False)
def changed_in_a_loop(x):
    w, n = W, 2
    while n > tf.reduce_sum(x):
        w, n = w * 1.5, n - 1
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * x) ** 2
    return tape.gradient(y, w)


@pcbatch.autobatch(jit=False)
def one_of_a_list(x):
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(W * x) ** 2
    return tape.gradient(y, [W, x][tf.cast(x[0] > 0.0, tf.int32)])


def given_back(x):
    return W if x[0] > 3.0 else given_back(x + 1.0)


@pcbatch.autobatch(jit=False)
def from_a_call(x):
    w = given_back(x)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w * x) ** 2
    return tape.gradient(y, w)


@pytest.mark.parametrize("function", [changed_in_a_loop, one_of_a_list, from_a_call], ids=lambda f: f.__name__)
def test_what_may_be_a_variable_is_none(function):
    """A gradient by it would be None for all lanes, where Python's is one for some."""
    with pytest.raises(CompileError, match=r"PCB415: `W` is a variable"):
        function.check(X)
