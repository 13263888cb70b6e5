"""Metrics: velocities, momenta, and what a window of draws teaches."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import random
from pcbatch.nuts.kernel.metrics import (
    Metric,
    Window,
    add_draw,
    learned_metric,
    metric_of,
    momentum,
    velocities,
    velocity,
    window_for,
)

DIAGONAL = np.array([4.0, 0.25, 1.0])
DENSE = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 0.5]])
BOTH = pytest.mark.parametrize("inverse", [DIAGONAL, DENSE], ids=["diagonal", "dense"])


def as_matrix(array):
    return np.diag(array) if array.ndim == 1 else array


PRECISION = np.linalg.inv(DENSE)


def window_of(draws, inverse, gradients=None):
    window = Window(*map(tf.constant, window_for(inverse)))
    slopes = -np.asarray(draws, float).reshape(-1, 3) @ PRECISION if gradients is None else gradients
    for draw, slope in zip(draws, slopes, strict=True):
        window = add_draw(window, tf.constant(draw, tf.float64), tf.constant(slope, tf.float64))
    return window


@BOTH
def test_velocity_of_one_momentum_and_of_several(inverse):
    p = np.random.default_rng(1).normal(size=(2, 3))
    expected = p @ as_matrix(inverse)
    np.testing.assert_allclose(velocities(tf.constant(inverse), tf.constant(p)), expected, rtol=1e-14)
    np.testing.assert_allclose(velocity(tf.constant(inverse), tf.constant(p[1])), expected[1], rtol=1e-14)


@BOTH
def test_the_factor_is_a_root_of_the_mass_matrix(inverse):
    factor = as_matrix(metric_of(inverse).factor)
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(as_matrix(inverse)), rtol=1e-12, atol=1e-14)


@BOTH
def test_momenta_have_the_mass_matrix_as_covariance(inverse):
    metric = tf.nest.map_structure(tf.constant, metric_of(inverse))
    noise = random.normal(random.key(5), (40_000, 3), tf.float64)
    p = tf.vectorized_map(lambda each: momentum(metric, each), noise).numpy()
    mass = np.linalg.inv(as_matrix(inverse))
    error = np.sqrt((np.outer(np.diag(mass), np.diag(mass)) + mass**2) / len(p))  # of a covariance of normals
    np.testing.assert_array_less(np.abs(p.T @ p / len(p) - mass), 4.5 * error)


def test_a_diagonal_is_the_root_of_the_variances_of_draws_over_those_of_gradients():
    draws = np.random.default_rng(2).normal(size=(40, 3)) @ np.linalg.cholesky(DENSE).T + [1e3, 0.0, -5.0]
    window = window_of(draws, DIAGONAL)
    np.testing.assert_allclose(window.mean[0], draws.mean(axis=0), rtol=1e-13)
    metric = learned_metric(window, metric_of(DIAGONAL))
    expected = np.sqrt(draws.var(axis=0) / (draws @ PRECISION).var(axis=0))
    np.testing.assert_allclose(metric.inverse, expected, rtol=1e-9)
    np.testing.assert_allclose(metric.factor, expected**-0.5, rtol=1e-9)


def test_two_draws_tell_the_scales_of_independent_normals():
    scales = np.array([1e-8, 1.0, 1e8])
    draws = scales * np.random.default_rng(3).normal(size=(2, 3))
    metric = learned_metric(window_of(draws, DIAGONAL, gradients=-draws / scales**2), metric_of(DIAGONAL))
    np.testing.assert_allclose(metric.inverse, scales**2, rtol=1e-12)


@pytest.mark.parametrize("slope", [0.0, 1e200, np.nan, np.inf])
def test_a_number_whose_gradients_tell_nothing_keeps_its_scale(slope):
    """Constant, too large to be squared, or not finite; the others learn."""
    draws = np.random.default_rng(4).normal(size=(10, 3))
    gradients = np.stack([-draws[:, 0], slope * np.sign(draws[:, 1] * (slope != 0)), -draws[:, 2]], axis=1)
    metric = learned_metric(window_of(draws, DIAGONAL, gradients), metric_of(DIAGONAL))
    np.testing.assert_allclose(metric.inverse, [1.0, DIAGONAL[1], 1.0], rtol=1e-12)
    np.testing.assert_allclose(metric.factor, metric.inverse.numpy() ** -0.5, rtol=1e-12)


def test_a_dense_metric_is_numpys_covariance_shrunk_as_stan_does():
    draws = np.random.default_rng(2).normal(size=(40, 3)) @ np.linalg.cholesky(DENSE).T + [1e3, 0.0, -5.0]
    window = window_of(draws, DENSE)
    np.testing.assert_allclose(window.mean, draws.mean(axis=0), rtol=1e-13)
    metric = learned_metric(window, metric_of(DENSE))
    expected = (40 / 45) * np.cov(draws.T) + 1e-3 * (5 / 45) * np.eye(3)
    np.testing.assert_allclose(metric.inverse, expected, rtol=1e-10, atol=1e-13)
    factor = metric.factor.numpy()
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(expected), rtol=1e-9, atol=1e-12)


@BOTH
@pytest.mark.parametrize("draws", [[], [[1.0, 2.0, 3.0]], [[np.nan] * 3, [1.0, 2.0, 3.0]]], ids=[0, 1, "nan"])
def test_a_window_that_teaches_nothing_leaves_the_metric(inverse, draws):
    before = metric_of(inverse)
    after = learned_metric(window_of(draws, inverse), Metric(*map(tf.constant, before)))
    np.testing.assert_array_equal(after.inverse, before.inverse)
    np.testing.assert_array_equal(after.factor, before.factor)
