"""Distributions of constrained parameters whose moments are known: each bijector, in one density."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from pcbatch import nuts
from tests.nuts.densities import QUIET, assert_near

pytestmark = pytest.mark.slow  # `test_resuming.py` has a simplex, quickly

CONCENTRATION = np.array([0.7, 1.0, 2.0, 5.0])
SHAPE = 1.5
"""Of the LKJ distribution: det(R)^(SHAPE - 1)."""
FREEDOM = 6.0
"""Degrees of freedom of the Wishart distribution."""
SCALE = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, -0.3], [0.0, -0.3, 0.5]])
INITIAL = {
    "above": 3.0,
    "below": 0.0,
    "between": 0.5,
    "sorted": np.array([-1.0, 0.0, 1.0]),
    "shares": np.full((2, 4), 0.25),
    "direction": np.array([1.0, 0.0, 0.0]),
    "correlation": np.eye(3),
    "covariance": np.eye(3),
    "effects": np.zeros(4),
}
BIJECTORS = {
    "above": nuts.lower(2),
    "below": nuts.upper(1),
    "between": nuts.interval(0, 1),
    "sorted": nuts.ordered,
    "shares": nuts.simplex,
    "direction": nuts.unit_vector,
    "correlation": nuts.cholesky_corr,
    "covariance": nuts.cholesky_cov,
    "effects": nuts.zero_sum,
}


def density(p):
    """Exponentials, a beta, sorted normals, Dirichlets, a point of the sphere, LKJ, Wishart, normals of sum zero."""
    exponentials = -2.0 * (p["above"] - 2.0) + 3.0 * (p["below"] - 1.0)
    beta = tf.math.log(p["between"]) + 2.0 * tf.math.log1p(-p["between"])
    normals = -0.5 * tf.reduce_sum(p["sorted"] ** 2) - 0.5 * tf.reduce_sum(p["effects"] ** 2)
    dirichlets = tf.reduce_sum((CONCENTRATION - 1.0) * tf.math.log(p["shares"]))
    lkj = tf.reduce_sum((np.array([2.0, 1.0, 0.0]) + 2.0 * SHAPE - 2.0) * _logs(p["correlation"]))
    whitened = tf.linalg.triangular_solve(np.linalg.cholesky(SCALE), p["covariance"])
    # The density of a factor is that of the covariance times its Jacobian, 2^n prod l[i, i]^(n - i).
    wishart = tf.reduce_sum((FREEDOM - 4.0 + np.array([3.0, 2.0, 1.0])) * _logs(p["covariance"]))
    return exponentials + beta + normals + dirichlets + lkj + wishart - 0.5 * tf.reduce_sum(whitened**2)


def _logs(factor):
    return tf.math.log(tf.linalg.diag_part(factor))


@pytest.fixture(scope="module")
def samples():
    options = {"chains": 32, "warmup": 400, "draws": 400, "seed": 1, "dtype": tf.float64, **QUIET}
    return nuts.sample(density, INITIAL, bijectors=BIJECTORS, **options)


def outer(vectors):
    return np.einsum("...i,...j->...ij", vectors, vectors)


def squared(factors):
    return factors @ np.swapaxes(factors, -1, -2)


def assert_distributed(draws, known):
    """Mean, mean square, and the shares below the 5% and the 95% quantile are those of a distribution of SciPy's."""
    assert_near(draws.mean(axis=1), known.mean())
    assert_near((draws**2).mean(axis=1), known.var() + known.mean() ** 2)
    for share in (0.05, 0.95):
        assert_near((draws < known.ppf(share)).mean(axis=1), share)


def test_numbers(samples):
    assert_distributed(samples["above"], stats.expon(2.0, 1 / 2))
    assert_distributed(1.0 - samples["below"], stats.expon(0.0, 1 / 3))
    assert_distributed(samples["between"], stats.beta(2, 3))


def test_sorted_normals(samples):
    largest = 1.5 / np.sqrt(np.pi)
    assert_near(samples["sorted"].mean(axis=1), [-largest, 0.0, largest])
    outside = 1 + np.sqrt(0.75) / np.pi
    assert_near((samples["sorted"] ** 2).mean(axis=1), [outside, 3.0 - 2.0 * outside, outside])


def test_dirichlets(samples):
    total = CONCENTRATION.sum()
    for place in range(2):
        for k, alpha in enumerate(CONCENTRATION):
            assert_distributed(samples["shares"][:, :, place, k], stats.beta(alpha, total - alpha))
    products = (samples["shares"][:, :, 0, 2] * samples["shares"][:, :, 0, 3]).mean(axis=1)
    assert_near(products, CONCENTRATION[2] * CONCENTRATION[3] / (total * (total + 1)))


def test_points_of_a_sphere(samples):
    assert_near(outer(samples["direction"]).mean(axis=1), np.eye(3) / 3)
    for k in range(3):
        assert_distributed(samples["direction"][..., k], stats.uniform(-1, 2))  # Archimedes' hat-box


def test_correlations(samples):
    correlations = squared(samples["correlation"])
    np.testing.assert_allclose(np.diagonal(correlations, axis1=-2, axis2=-1), 1.0, rtol=1e-12)
    for i, j in ((1, 0), (2, 0), (2, 1)):
        assert_distributed(correlations[..., i, j], stats.beta(SHAPE + 0.5, SHAPE + 0.5, -1, 2))


def test_covariances(samples):
    covariances = squared(samples["covariance"])
    assert_near(covariances.mean(axis=1), FREEDOM * SCALE)
    for i in range(3):
        assert_distributed(covariances[..., i, i], stats.chi2(FREEDOM, scale=SCALE[i, i]))


def test_effects(samples):
    np.testing.assert_allclose(samples["effects"].sum(axis=-1), 0.0, atol=1e-12)
    assert_near(outer(samples["effects"]).mean(axis=1), np.eye(4) - 1 / 4)


def test_nothing_speaks_against_constants(samples):
    """Of a factor some numbers are the same in each draw."""
    assert not [text for text in samples.warnings if "R-hat" in text or "stand still" in text]
    assert np.isnan(samples.summary().loc["correlation[0, 0]", "r_hat"])
