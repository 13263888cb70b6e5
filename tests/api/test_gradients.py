"""Tapes around batched calls disturb nothing; `single` has gradients. Those through calls: see `tests/adjoint`."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import CompileError
from pcbatch.runtime.backends.tensorflow.stores import store_element

X = tf.constant([3.0, 7.0])
SCALE = tf.Variable(2.0)


@pcbatch.autobatch(jit=False)
def halved(x):
    while x > 1.0:
        x = x * 0.5
    return x * SCALE


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


@pcbatch.autobatch
def with_stores(x, a):
    b = tf.zeros(4)
    b[1] = x[0] * x[1]
    b[0:2] = b[1:3] * 2.0 + x
    a[-1] *= b[0]
    a[0] = x[1]
    c = tf.stack([b, b * a])
    c[1, :] = x[0]
    c[0, 2:4] = a[1:3]
    return tf.reduce_sum(c * c * [1.0, 2.0, 3.0, 4.0])


def without_stores(x, a):
    b1 = x[0] * x[1]
    b = tf.stack([b1 * 2.0 + x[0], x[1], 0.0, 0.0])
    a = tf.stack([x[1], a[1], a[2], a[3] * b[0]])
    c = tf.stack([tf.concat([b[:2], a[1:3]], 0), tf.fill([4], x[0])])
    return tf.reduce_sum(c * c * [1.0, 2.0, 3.0, 4.0])


def test_single_is_differentiable_through_stores():
    x, a = tf.constant([0.7, -1.3]), tf.constant([1.0, 2.0, 3.0, 4.0])

    def slopes(function):
        with tf.GradientTape() as tape:
            tape.watch([x, a])
            y = function(x, a)
        return [y, *tape.gradient(y, [x, a])]

    for got, expected in zip(slopes(with_stores.single), slopes(without_stores), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_stores_of_every_dtype_and_shape():
    """What NumPy does with the same store."""
    for dtype in ("bool", "int8", "uint8", "uint16", "int64", "float16", "float64", "complex64"):
        array = np.arange(12).reshape(3, 4).astype(dtype)
        for index, value in [((1, 2), 1), ((-1,), [1, 0, 1, 1]), ((1,), [[1, 1, 0, 1]]), ((slice(0, 3, 2), 1), 1)]:
            expected = array.copy()
            expected[index] = np.asarray(value, dtype)
            got = store_element(tf.constant(array), index, tf.constant(np.asarray(value, dtype)))
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(store_element(array, ..., np.ones([4], dtype)), np.ones_like(array))


def check_positive(x):
    tf.debugging.assert_positive(x + 100.0)
    return x


def test_assertions_about_values_stay_refused():
    """TensorFlow's own, in `tape.batch_jacobian`, are about constants."""

    @pcbatch.autobatch
    def asks_for_values(x):
        return check_positive(x)

    @pcbatch.autobatch(jit=False)
    def asks_for_constants(x):
        v = tf.reshape(x, [1, 1])
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = v * v
        return tape.batch_jacobian(y, v)[0, 0, 0]

    with pytest.raises(CompileError, match="PCB119"):
        asks_for_values(X)
    np.testing.assert_array_equal(asks_for_constants(X), 2 * X)


def test_what_works_in_graphs_alone_is_refused():
    @pcbatch.autobatch
    def slope(x):
        return tf.gradients(x * x, x)[0]

    with pytest.raises(CompileError, match=r"PCB120(.|\n)*tf\.GradientTape"):
        slope.check(X)
