"""The sampler's arithmetic: leapfrog steps and weights."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch.nuts.kernel import dynamics


def banana(q, data):
    return -0.5 * (q[0] ** 2 + (q[1] - q[0] ** 2) ** 2 + data * q[2] ** 4)


Q = tf.constant([0.3, -1.2, 0.7], tf.float64)
P = tf.constant([0.8, 0.1, -0.5], tf.float64)
DATA = tf.constant(2.0, tf.float64)
UNIT = tf.ones(3, tf.float64)
DIAGONAL = tf.constant([0.5, 2.0, 1.3], tf.float64)
DENSE = tf.constant([[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.7]], tf.float64)
METRICS = pytest.mark.parametrize("inverse_mass", [UNIT, DIAGONAL, DENSE], ids=["unit", "diagonal", "dense"])


def test_gradient_is_that_of_finite_differences():
    _, gradient = dynamics.value_and_gradient(banana, Q, DATA)
    shifts = 1e-6 * np.eye(3)
    differences = [(banana(Q + shift, DATA) - banana(Q - shift, DATA)) / 2e-6 for shift in shifts]
    np.testing.assert_allclose(gradient, differences, rtol=1e-7)


def test_a_density_without_a_gradient_is_refused():
    with pytest.raises(ValueError, match="has no gradient"):
        dynamics.value_and_gradient(lambda q, data: data, Q, DATA)


@METRICS
def test_leapfrog_is_reversible(inverse_mass):
    step = tf.constant(0.1, tf.float64)
    _, g = dynamics.value_and_gradient(banana, Q, DATA)
    q, p, g, _ = dynamics.leapfrog(banana, 25, inverse_mass, Q, P, g, step, DATA)
    assert np.abs(q - Q).max() > 0.1
    q, p, _, lp = dynamics.leapfrog(banana, 25, inverse_mass, q, p, g, -step, DATA)
    np.testing.assert_allclose(q, Q, atol=1e-13)
    np.testing.assert_allclose(p, P, atol=1e-13)
    np.testing.assert_allclose(lp, banana(Q, DATA), atol=1e-13)


def test_leapfrog_of_length_zero_finds_log_density_and_gradient():
    nothing = tf.zeros((), tf.float64)
    q, p, g, lp = dynamics.leapfrog(banana, 1, DENSE, Q, tf.zeros_like(Q), tf.zeros_like(Q), nothing, DATA)
    expected_lp, expected_g = dynamics.value_and_gradient(banana, Q, DATA)
    np.testing.assert_array_equal(q, Q)
    np.testing.assert_array_equal(p, np.zeros(3))
    np.testing.assert_array_equal(g, expected_g)
    np.testing.assert_array_equal(lp, expected_lp)


@METRICS
def test_energy_error_falls_with_the_square_of_the_step(inverse_mass):
    def error(step, steps):
        lp, g = dynamics.value_and_gradient(banana, Q, DATA)
        _, p, _, lp_end = dynamics.leapfrog(banana, steps, inverse_mass, Q, P, g, tf.constant(step, tf.float64), DATA)
        return float(dynamics.energy_of(inverse_mass, p, lp_end) - dynamics.energy_of(inverse_mass, P, lp))

    assert 3.8 < error(0.02, 50) / error(0.01, 100) < 4.2


def test_energy_that_is_not_finite_is_infinite():
    for lp in (np.nan, np.inf, -np.inf):
        assert float(dynamics.energy_of(UNIT, P, tf.constant(lp, tf.float64))) == np.inf


@pytest.mark.parametrize(
    ("a", "b", "share"),
    [
        (0.0, 0.0, 0.5),
        (-3.0, -1.0, 1 / (1 + np.exp(-2.0))),
        (2.0, -1.0, 1 / (1 + np.exp(3.0))),
        (-np.inf, -900.0, 1.0),
        (0.0, -800.0, 0.0),
        (-5.0, -np.inf, 0.0),
        (-1e4, 1e4, 1.0),
    ],
)
def test_the_share_of_the_second_weight(a, b, share):
    for uniform in (0.0, 0.999 * share, min(1.001 * share, 1 - 2**-24), 1 - 2**-24):
        drawn = dynamics.outweighs(*(tf.constant(number, tf.float64) for number in (uniform, a, b)))
        assert bool(drawn) == (uniform < share)


def test_log_add():
    def log_add(a, b):
        return float(dynamics.log_add(tf.constant(a, tf.float64), tf.constant(b, tf.float64)))

    np.testing.assert_allclose(log_add(-700.0, -701.0), np.logaddexp(-700.0, -701.0), rtol=1e-15)
    np.testing.assert_allclose(log_add(-1.0, 900.0), 900.0)
    assert log_add(-1.5, -np.inf) == -1.5
    assert log_add(0.0, np.inf) == np.inf
    assert log_add(-np.inf, -1.5) == -1.5
    assert log_add(-np.inf, -np.inf) == -np.inf
    assert log_add(-np.inf, np.inf) == np.inf


def test_weights_of_points_without_energy():
    def log_weight(energy, energy_0):
        return float(dynamics.log_weight_of(tf.constant(energy, tf.float64), tf.constant(energy_0, tf.float64)))

    assert log_weight(3.0, 1.0) == -2.0
    assert log_weight(np.inf, 1.0) == log_weight(np.inf, np.inf) == -np.inf
    assert log_weight(1.0, np.inf) == np.inf  # a chain that has not begun takes any point


def test_choose_keeps_the_structure():
    first, second = (tf.constant([1.0]), (tf.constant(2),)), (tf.constant([3.0]), (tf.constant(4),))
    (vector,), (number,) = dynamics.choose(tf.constant(False), first, second)
    assert (float(vector), int(number)) == (3.0, 4)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda q: -q * q, r"scalar, not of shape \(3,\): sum its terms"),
        (lambda q: "x", "is a number, not of dtype string"),
        (lambda q: None, "is a number, not NoneType"),
        (lambda q: {"lp": q[0]}, "is a number, not dict"),
        (lambda q: tf.complex(q[0], q[1]), "is a number, not of dtype complex64"),
    ],
)
def test_a_log_density_is_a_real_scalar(value, message):
    with pytest.raises(ValueError, match=message):
        dynamics.value_and_gradient(lambda q, data: value(q), tf.zeros(3), None)


@pytest.mark.parametrize("dtype", [tf.float16, tf.float64])
def test_a_log_density_may_be_computed_in_another_float(dtype):
    lp, g = dynamics.value_and_gradient(lambda q, data: tf.reduce_sum(tf.cast(q, dtype) ** 2), tf.ones(3), None)
    assert (lp.dtype, float(lp), g.dtype, g.numpy().tolist()) == (tf.float32, 3.0, tf.float32, [2.0] * 3)
