"""No gradient flows through a batched call yet: asking for one is a clear error, and nothing else is disturbed."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import GradientError

X = tf.constant([3.0, 7.0])
SCALE = tf.Variable(2.0)


@pcbatch.autobatch(jit=False)
def halved(x):
    while x > 1.0:
        x = x * 0.5
    return x * SCALE


def loss(x):
    return tf.reduce_sum(halved(x) + x)


def gradient(sources):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = loss(X)
    return tape.gradient(y, sources)


@pytest.mark.parametrize("place", [lambda f: f, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("source", [X, SCALE], ids=["argument", "captured"])
def test_a_gradient_through_a_call_is_refused(place, source):
    with pytest.raises(
        GradientError, match=r"PCB601: a gradient through the batched call of 'halved' .*no reverse mode yet"
    ):
        place(lambda: gradient(source))()


@pytest.mark.parametrize("jit", [False, True])
def test_forward_under_a_tape(jit):
    function = halved.options(jit=jit)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = function(X)
        z = tf.reduce_sum(X * X + tf.stop_gradient(y))
    np.testing.assert_array_equal(y, [1.5, 1.75])
    np.testing.assert_array_equal(tape.gradient(z, X), [6.0, 14.0])


def test_forward_under_a_tape_inside_a_tf_function():
    @tf.function
    def outer(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x) + tf.reduce_sum(tf.stop_gradient(halved(x)))
        return y, tape.gradient(y, x)

    y, slope = outer(X)
    np.testing.assert_allclose(y, 9.0 + 49.0 + 1.5 + 1.75)
    np.testing.assert_array_equal(slope, [6.0, 14.0])


def test_a_gradient_inside_a_helper_is_a_value_like_any_other():
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3.0
        return tape.gradient(y, x)

    @pcbatch.autobatch(jit=False)
    def descended(x):
        while x > 1.0:
            x = x - 0.01 * slope(x)
        return x

    expected = [descended.single(x).numpy() for x in X]
    np.testing.assert_allclose(descended(X), expected, rtol=1e-6)
