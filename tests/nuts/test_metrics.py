"""Metrics: velocities, momenta, and what a window of draws teaches."""

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import nuts, random
from pcbatch.nuts import api
from pcbatch.nuts.kernel.metrics import (
    Metric,
    Window,
    add_draw,
    geometric_mean,
    learned_dense,
    learned_metric,
    metric_of,
    momentum,
    velocities,
    velocity,
    window_for,
)
from pcbatch.nuts.running import sampling_run
from tests.nuts.densities import QUIET

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


def test_a_dense_metric_is_between_the_covariance_of_draws_and_the_inverse_of_that_of_gradients():
    """`m` with `m @ precision @ m == covariance`, both shrunk towards their diagonals by a draw."""
    random = np.random.default_rng(2)
    draws = random.normal(size=(40, 3)) @ np.linalg.cholesky(DENSE).T + [1e3, 0.0, -5.0]
    gradients = -draws @ PRECISION + random.normal(size=(40, 3))  # so that they do not agree
    window = window_of(draws, DENSE, gradients)
    np.testing.assert_allclose(window.mean[0], draws.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(window.spread[0], 39 * np.cov(draws.T), rtol=1e-9)
    inverse, factor = learned_dense(window, metric_of(DENSE))
    np.testing.assert_allclose(inverse @ shrunk(gradients) @ inverse, shrunk(draws), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(inverse), rtol=1e-9, atol=1e-12)


def shrunk(draws):
    covariance, count = np.cov(draws.T), len(draws)
    return (count * covariance + np.diag(np.diag(covariance))) / (count + 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("draws", "spread"), [(10, 13.0), (20, 7.0), (400, 1.3)])
def test_fewer_draws_than_numbers_teach_a_dense_metric_what_they_show(draws, spread, dtype):
    """The spread of scales that is left of a correlated normal of 31 numbers; a diagonal leaves 16."""
    scales = np.exp(np.random.default_rng(5).normal(size=31))
    covariance = 0.9 ** np.abs(np.subtract.outer(range(31), range(31))) * np.outer(scales, scales)
    seen = np.random.default_rng(6).multivariate_normal(np.zeros(31), covariance, draws).astype(dtype)
    window = Window(*map(tf.constant, window_for(np.eye(31, dtype=dtype))))
    for draw, slope in zip(seen, (-seen @ np.linalg.inv(covariance)).astype(dtype), strict=True):
        window = add_draw(window, tf.constant(draw), tf.constant(slope))
    metric = learned_dense(window, metric_of(np.eye(31, dtype=dtype)))
    inverse = metric.inverse.astype(float)
    assert metric.inverse.dtype == metric.factor.dtype == dtype
    left = np.sqrt(np.linalg.eigvals(np.linalg.solve(inverse, covariance)).real)
    assert left.max() / left.min() < spread


@BOTH
@pytest.mark.parametrize("draws", [[], [[1.0, 2.0, 3.0]], [[np.nan] * 3, [1.0, 2.0, 3.0]]], ids=[0, 1, "nan"])
def test_a_window_that_teaches_nothing_leaves_the_metric(inverse, draws):
    before = metric_of(inverse)
    learned = learned_metric if inverse.ndim == 1 else learned_dense
    after = learned(window_of(draws, inverse), Metric(*map(tf.constant, before)))
    np.testing.assert_array_equal(after.inverse, before.inverse)
    np.testing.assert_array_equal(after.factor, before.factor)


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 1e4), (np.float64, 1e12)])
def test_correlations_beyond_rounding_are_not_learned(dtype, most):
    """Of any number of draws: the inverse mass matrix and its root have to be of use in their dtype."""
    covariance = np.full((3, 3), 1 - 1e-14) + 1e-14 * np.eye(3)
    spread = 1e9 * np.stack([covariance, np.linalg.inv(covariance + 1e-13 * np.eye(3))])
    window = Window(np.float64(1e9), np.zeros((2, 3)), spread)
    metric = learned_dense(window, metric_of(np.eye(3, dtype=dtype)))
    values = np.linalg.eigvalsh(metric.inverse.astype(float))
    assert 0 < values.max() / values.min() < most
    with np.errstate(all="raise"):
        product = metric.factor.T @ metric.inverse @ metric.factor
    np.testing.assert_allclose(product, np.eye(3), atol=0.01)


def test_what_rounding_makes_indefinite_leaves_the_metric():
    """As in the first window of a chain that has hardly moved, of coefficients that nearly cancel."""
    wide = np.array([[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]])
    spread = np.stack([np.diag([1e-30, 1e30]) @ wide @ np.diag([1e-30, 1e30]), 1e9 * wide])
    before = metric_of(np.array([[2.0, 0.5], [0.5, 1.0]], np.float32))
    sound = learned_dense(Window(np.float64(9), np.zeros((2, 2)), np.stack([wide, wide])), before)
    assert (sound.inverse != before.inverse).any()
    after = learned_dense(Window(np.float64(9), np.zeros((2, 2)), spread), before)
    assert np.isfinite(after.inverse).all()
    assert np.isfinite(after.factor).all()


# -- runs --------------------------------------------------------------------------------------------------------------

OBSERVED = np.random.default_rng(7).normal(size=(60, 3)) @ np.array([[1.0, 0.9, 0.9], [0.0, 0.3, 0.2], [0.0, 0.0, 0.2]])


def regression(q, x):
    """Linear, on columns that are much alike: the posterior's covariance is known."""
    return -0.5 * (tf.reduce_sum(tf.linalg.matvec(x, q) ** 2) + tf.reduce_sum(q**2))


def normals(q):
    return -0.5 * tf.reduce_sum(q**2)


def warmed(**options):
    options = {
        "data": OBSERVED,
        "metric": "dense",
        "warmup": 150,
        "draws": 40,
        "chains": 3,
        "seed": 2,
        **QUIET,
        **options,
    }
    return nuts.sample(regression, np.zeros(3), **options)


@pytest.fixture(scope="module")
def three():
    return warmed()


def test_a_dense_metric_is_learned_by_each_chain(three):
    covariance = np.linalg.inv(OBSERVED.T @ OBSERVED + np.eye(3))
    assert three.inverse_mass_matrix.shape == (3, 3, 3)
    for learned in three.inverse_mass_matrix:
        left = np.sqrt(np.linalg.eigvals(np.linalg.solve(learned, covariance)).real)
        assert left.max() / left.min() < 1.8
    assert three.sample_stats["n_steps"].mean() < 5


def test_a_chain_with_a_dense_metric_does_not_depend_on_the_others_or_on_chunks(three):
    alone = warmed(chains=1, chunk=7)
    np.testing.assert_array_equal(alone["x"][0], three["x"][0])
    np.testing.assert_array_equal(alone.inverse_mass_matrix[0], three.inverse_mass_matrix[0])


def test_a_chain_that_fails_leaves_the_others_their_metric(three):
    """Its window is not finite, and no decomposition sees it."""
    starts = np.zeros((3, 3))

    def failing(q, x):
        return regression(q, x) + tf.where(q[0] > 0.5, tf.constant(np.inf, q.dtype), 0.0)

    with pytest.warns(nuts.SamplerWarning):
        found = nuts.sample(
            failing,
            np.zeros(3),
            initial_per_chain=starts,
            data=OBSERVED,
            metric="dense",
            warmup=150,
            draws=10,
            chains=3,
            seed=2,
            progress=False,
        )
    assert np.isfinite(found.inverse_mass_matrix).all()


@pytest.fixture
def nothing_runs(monkeypatch):
    """`nuts.sample` gives the run that it would make."""
    monkeypatch.setattr(sampling_run.SamplingRun, "run", lambda course, progress: course)
    monkeypatch.setattr(api, "_told", lambda course, extra: course)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "dense"),
        ({"adapt": "pooled"}, "dense"),
        ({"adapt": None, "step_size": 0.1}, "diag"),
        ({"inverse_mass_matrix": np.ones(3)}, "diag"),
        ({"inverse_mass_matrix": np.eye(3), "adapt": None, "step_size": 0.1}, "dense"),
        ({"jit": False}, "diag"),
    ],
    ids=["regression", "pooled", "fixed", "diagonal given", "matrix given", "not compiled"],
)
def test_the_kind_of_metric_is_chosen(options, kind, nothing_runs):
    course = warmed(metric="auto", **options)
    assert course.settings.metric == kind
    assert course.state.metric.inverse.ndim == (3 if kind == "dense" else 2)


@pytest.mark.parametrize("size", [1, 30])
def test_independent_cheap_parameters_have_a_diagonal(size, nothing_runs):
    assert nuts.sample(normals, np.zeros(size), chains=2, **QUIET).settings.metric == "diag"


def test_no_chain_stands_still_where_coefficients_nearly_cancel():
    """In float32, from far out: whatever a chain learns, it is finite."""
    random = np.random.default_rng(1)
    school, score = random.integers(2, size=200), random.normal(100, 15, 200)
    x = np.stack([np.ones(200), school, score, school * score], axis=1)

    def density(q, data):
        beta, sigma = q[:4], tf.exp(q[4])
        return -0.5 * tf.reduce_sum(((data[1] - tf.linalg.matvec(data[0], beta)) / sigma) ** 2) - 200 * q[4]

    data = (x.astype(np.float32), (x @ [20.0, 30.0, 0.6, -0.3] + random.normal(0, 18, 200)).astype(np.float32))
    starts = random.uniform(-2, 2, (8, 5)).astype(np.float32)
    options = {"chains": 8, "warmup": 300, "draws": 50, "seed": 3, "progress": False}
    samples = nuts.sample(density, starts[0], data=data, initial_per_chain=starts, **options)
    assert samples.settings.metric == "dense"
    assert (samples.sample_stats["acceptance_rate"].mean(axis=1) > 0.5).all()


def test_what_warms_up_without_adapting_runs():
    samples = warmed(metric="dense", adapt=None, step_size=0.1, warmup=4, draws=2)
    np.testing.assert_array_equal(samples.inverse_mass_matrix, np.broadcast_to(np.eye(3), (3, 3, 3)))


@pytest.mark.parametrize("covariance", [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, -1e-9]], [[1.0, 1.0], [1.0, 1.0]]])
def test_an_indefinite_matrix_has_no_root(covariance):
    """Singular values alone would not tell; the other matrix of the stack has its own."""
    stack = np.stack([np.array(covariance), DENSE[:2, :2]])
    mean, root = geometric_mean(stack, np.broadcast_to(np.eye(2), (2, 2, 2)))
    assert not np.isfinite(root[0]).all() or np.linalg.cond(mean[0]) > 1e7
    np.testing.assert_allclose(mean[1] @ mean[1], DENSE[:2, :2], rtol=1e-14)


def test_a_product_that_overflows_has_no_root():
    huge = 1e200 * np.eye(2)
    mean, root = geometric_mean(np.stack([huge, DENSE[:2, :2]]), np.stack([huge, np.eye(2)]))
    assert not np.isfinite(mean[0]).any()
    assert not np.isfinite(root[0]).any()
    np.testing.assert_allclose(mean[1] @ mean[1], DENSE[:2, :2], rtol=1e-14)
