"""Metrics: velocities, momenta, and what a window of draws teaches."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import random
from pcbatch.nuts.kernel.metrics import (
    Metric,
    Window,
    add_draw,
    empty_window,
    learned_metric,
    metric_of,
    momentum,
    velocities,
    velocity,
)

DIAGONAL = np.array([4.0, 0.25, 1.0])
DENSE = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 0.5]])
BOTH = pytest.mark.parametrize("inverse", [DIAGONAL, DENSE], ids=["diagonal", "dense"])


def as_matrix(array):
    return np.diag(array) if array.ndim == 1 else array


def window_of(draws, inverse):
    window = empty_window(Window(tf.constant(0.0, tf.float64), tf.zeros(3, tf.float64), tf.constant(inverse)))
    for draw in draws:
        window = add_draw(window, tf.constant(draw, tf.float64))
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


@BOTH
def test_windows_are_numpy_moments_shrunk_as_stan_does(inverse):
    draws = np.random.default_rng(2).normal(size=(40, 3)) @ np.linalg.cholesky(DENSE).T + [1e3, 0.0, -5.0]
    window = window_of(draws, inverse)
    np.testing.assert_allclose(window.mean, draws.mean(axis=0), rtol=1e-13)
    metric = learned_metric(window, metric_of(inverse))
    covariance = np.cov(draws.T)
    expected = (40 / 45) * covariance + 1e-3 * (5 / 45) * np.eye(3)
    if inverse.ndim == 1:
        expected = np.diag(np.diag(expected))
    np.testing.assert_allclose(as_matrix(metric.inverse.numpy()), expected, rtol=1e-10, atol=1e-13)
    factor = as_matrix(metric.factor.numpy())
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(expected), rtol=1e-9, atol=1e-12)


@BOTH
@pytest.mark.parametrize("draws", [[], [[1.0, 2.0, 3.0]], [[np.nan, 0.0, 0.0], [1.0, 2.0, 3.0]]], ids=[0, 1, "nan"])
def test_a_window_that_teaches_nothing_leaves_the_metric(inverse, draws):
    before = metric_of(inverse)
    after = learned_metric(window_of(draws, inverse), Metric(*map(tf.constant, before)))
    np.testing.assert_array_equal(after.inverse, before.inverse)
    np.testing.assert_array_equal(after.factor, before.factor)
