"""Gradients where a slope is infinite or has a bend: TensorFlow's of `f.single`, though XLA's are others."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch

POINTS = np.array([[0.0, 1.0, 4.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 2.0], [np.nan, 1.0, np.inf]])
SHARED = tf.constant([0.0, 1.0, 4.0])
ROOTS = (tf.sqrt, tf.math.rsqrt, tf.math.reciprocal, tf.raw_ops.Inv)
FORMS = [{"form": "native"}, {"form": "lockstep"}, {"jit": False}]


def curve(x):
    """What is kept of each function where x is positive, and functions with a bend."""
    positive = x > 0.0
    return sum(tf.where(positive, f(x=x), tf.zeros_like(x)) for f in ROOTS) + tf.nn.elu(x) + 3.0 * tf.nn.selu(x)


@pcbatch.autobatch
def descent(x, n):
    shared = tf.cast(SHARED, x.dtype)
    while n > 0:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            tape.watch(shared)
            y = tf.reduce_sum(curve(x))
            same = tf.reduce_sum(curve(shared))
        x = 0.5 * x - 0.1 * tape.gradient(y, x) + 0.1 * tape.gradient(same, shared)
        n = n - 1
    return x


@pcbatch.autobatch
def turns(x, n):
    while n > 0:
        x = 0.5 * curve(x)
        n = n - 1
    return x


@pytest.mark.parametrize("options", FORMS, ids=["native", "lockstep", "graph"])
def test_a_tape_inside(options):
    x, n = tf.constant(POINTS, tf.float32), np.array([1, 2, 1, 1])
    found = descent.options(**options)(x, n)
    for lane, row in enumerate(x):
        np.testing.assert_allclose(found[lane], descent.single(row, n[lane]), rtol=1e-5, err_msg=f"{row}")


@pytest.mark.parametrize("dtype", [tf.float32, pytest.param(tf.float64, marks=pytest.mark.slow)])
def test_a_tape_around(dtype):
    x, n = tf.constant(POINTS, dtype), np.array([1, 0, 2, 1])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        batch = turns(x, n)
        singles = tf.stack([turns.single(x[lane], n[lane]) for lane in range(len(n))])
    np.testing.assert_allclose(tape.gradient(batch, x), tape.gradient(singles, x), rtol=1e-5)
