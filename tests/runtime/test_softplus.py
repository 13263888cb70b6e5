"""The softplus and its gradient under XLA: as exact as TensorFlow's, and with one exponential for both."""

import decimal
import re
from decimal import Decimal

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch.runtime.backends.tensorflow.xla_cpu import softplus


@pcbatch.autobatch
def both(x):
    """The value and the slope."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.softplus(x)
    return y, tape.gradient(y, x)


def points(dtype):
    """Positions where no value is so small that XLA rounds it to zero."""
    lowest = -86 if dtype == "float32" else -700
    random = np.random.default_rng(0)
    return np.concatenate([np.linspace(lowest, 100, 401), 3 * random.normal(size=400), [0.0, -0.0]]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_within_rounding(dtype):
    """Both within four units of the last place of what is computed with many digits."""
    x = points(dtype)
    with decimal.localcontext() as context:
        context.prec = 80 if dtype == "float32" else 340  # of 1 + e, for the smallest e as well
        powers = [Decimal(float(-abs(each))).exp() for each in x]
        values = [max(Decimal(float(each)), 0) + (1 + e).ln() for each, e in zip(x, powers, strict=True)]
        slopes = [(1 if each >= 0 else e) / (1 + e) for each, e in zip(x, powers, strict=True)]
        for found, expected in zip(both(x), (values, slopes), strict=True):
            assert found.dtype == dtype
            errors = [abs(Decimal(float(one)) / other - 1) for one, other in zip(found.numpy(), expected, strict=True)]
            assert max(errors) < 4 * Decimal(float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_at_the_ends(dtype):
    """Infinities and NaN, as TensorFlow gives them."""
    x = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30], dtype)
    for found, expected in zip(both(x), both.options(jit=False)(x), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_left_to_tensorflow(dtype):
    x = tf.cast(np.linspace(-5, 5, 11), dtype)
    np.testing.assert_array_equal(both(x)[0], tf.function(tf.math.softplus, jit_compile=True)(x))


def test_curvature():
    """A gradient of a gradient, and one whose upstream differs by lane."""

    @pcbatch.autobatch
    def curvature(x, weights):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                total = tf.reduce_sum(weights * tf.math.log_sigmoid(x))
            slopes = inner.gradient(total, x)
        return slopes, outer.gradient(slopes, x)

    random = np.random.default_rng(1)
    x, weights = random.normal(size=(5, 3)), random.normal(size=(5, 3))
    slopes, found = curvature(x, weights)
    s = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(slopes, weights * (1 - s), rtol=1e-12)
    np.testing.assert_allclose(found, -weights * s * (1 - s), rtol=1e-12)


def test_derivatives_of_what_stands_in():
    """Right everywhere, at the bend of the parts, too."""
    x = tf.constant([-2.0, 0.0, 3.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = softplus.softplus(x)
    np.testing.assert_allclose(tape.gradient(y, x), tf.math.sigmoid(x), rtol=1e-14)
    np.testing.assert_allclose(softplus.sigmoid(x), tf.math.sigmoid(x), rtol=1e-14)


def counted(function, stage, *names):
    """How many operations of some names XLA's program has for 8 rows of 100 numbers."""
    compiled = tf.function(function, jit_compile=True)
    text = compiled.experimental_get_compiler_ir(tf.zeros((8, 100)))(stage=stage)
    return sum(len(re.findall(rf" {name}\(", text)) for name in names)


def test_no_logarithm():
    """XLA's program has no logarithm, and TensorFlow's own would have."""
    names = "log", "log-plus-one"
    assert not counted(both.options(max_depth=8).__call__, "hlo", *names)
    assert counted(lambda x: tf.math.softplus(x), "hlo", *names)


def test_value_and_slope_share_what_they_are_made_of():
    """TensorFlow's gradient is a sigmoid; one that is the gradient of no softplus stays."""

    @pcbatch.autobatch
    def alone(x):
        return tf.math.sigmoid(x), tf.math.softplus(2 * x)

    exponentials = "exponential", "logistic"
    assert not counted(both.options(max_depth=8).__call__, "hlo", *exponentials)
    assert counted(both.options(max_depth=8).__call__, "optimized_hlo", "round-nearest-even") == 1
    assert counted(alone.options(max_depth=8).__call__, "hlo", *exponentials)
