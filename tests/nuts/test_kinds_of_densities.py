"""Densities of all kinds against quadrature or formulas: branches, recursion, JAX, missing data."""

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import nuts
from tests.nuts.densities import QUIET
from tests.nuts.loops import moments

pytestmark = pytest.mark.slow  # `test_loops.py` and `test_batched_densities.py` have the kinds, quickly

OPTIONS = {"chains": 16, "warmup": 200, "draws": 300, "seed": 4, "dtype": tf.float64, **QUIET}


def assert_moments(draws, mean, sd):
    """Mean and deviation within 4 standard errors, from chains that do not depend on each other."""
    for found, wanted in ((draws.mean(axis=1), mean), (((draws - mean) ** 2).mean(axis=1), sd**2)):
        error = found.std(ddof=1) / np.sqrt(len(found))
        assert abs(found.mean() - wanted) < 4 * error, (found.mean(), wanted, error)


@pcbatch.autobatch
def branching(x):
    """A normal density below 0.5 and an exponential one above, which meet; the loop's turns depend on `x`."""
    tail, left = 0.0 * x, x
    while left > 0.5:
        step = min(left - 0.5, 1.0)
        tail, left = tail + step, left - step
        if step <= 0.0:
            break
    return -0.5 * left * left - tail


def test_branches_and_loops():
    samples = nuts.sample(branching, 0.0, **OPTIONS)
    grid = np.linspace(-9.0, 30.0, 40001)
    logs = np.where(grid <= 0.5, -0.5 * grid**2, -0.125 - (grid - 0.5))
    assert_moments(samples["x"], *moments(grid, logs))


@pcbatch.autobatch
def continued(x, depth):
    """A continued fraction, x + 1 / (x + 1 / (x + ..)), deeper where `x` is small."""
    if depth <= 0:
        return x
    return x + 1.0 / continued(x, depth - 1)


def recursive(x):
    depth = tf.where(x < 1.0, 6, 3)
    return -0.5 * (continued(x, depth) - 2.0) ** 2 - x


def test_recursion():
    samples = nuts.sample(recursive, 1.0, bijectors={"x": nuts.positive}, **OPTIONS)
    grid = np.linspace(1e-4, 12.0, 40001)
    found = {}
    for depth in (3, 6):
        value = grid
        for _ in range(depth):
            value = grid + 1.0 / value
        found[depth] = -0.5 * (value - 2.0) ** 2 - grid
    assert_moments(samples["x"], *moments(grid, np.where(grid < 1.0, found[6], found[3])))


def test_a_function_of_jax():
    jax = pytest.importorskip("jax")

    def decay(x):
        def turn(carry):
            value, total = carry
            return 0.5 * value, total + value**2

        return -jax.lax.fori_loop(0, 5, lambda _, carry: turn(carry), (x, 0.0 * x))[1] + jax.numpy.sin(x)

    samples = nuts.sample(decay, 0.0, **{**OPTIONS, "dtype": tf.float32})
    grid = np.linspace(-8.0, 8.0, 40001)
    logs = -(grid**2) * sum(0.25**k for k in range(5)) + np.sin(grid)
    assert_moments(samples["x"].astype(np.float64), *moments(grid, logs))


HEIGHTS = np.array([1.2, np.nan, 0.3, 2.2, np.nan, 1.6])
MISSING = np.flatnonzero(np.isnan(HEIGHTS))


def with_missing(p):
    """Numbers around an unknown mean, each near the one before; those not seen are parameters."""
    heights = tf.tensor_scatter_nd_update(np.nan_to_num(HEIGHTS), MISSING[:, None], p["missing"])
    steps = heights[1:] - heights[:-1]
    near = -0.5 * tf.reduce_sum(steps**2) / 0.25 - 0.5 * (heights[0] - p["mean"]) ** 2
    return near - 0.5 * (p["mean"] / 2.0) ** 2


def test_missing_data_are_parameters():
    """Everything is normal: what is not seen has the mean and covariance of a formula."""
    samples = nuts.sample(with_missing, {"mean": 0.0, "missing": np.zeros(2)}, **OPTIONS)
    # In all seven numbers, the mean first, the density is a quadratic form.
    rows = np.zeros((7, 7))
    rows[0, 0], rows[1, :2] = 0.5, (-1.0, 1.0)
    for k in range(5):
        rows[2 + k, 1 + k], rows[2 + k, 2 + k] = -2.0, 2.0
    precision = rows.T @ rows
    unknown, known = [0, *(1 + MISSING)], [*(1 + np.flatnonzero(~np.isnan(HEIGHTS)))]
    covariance = np.linalg.inv(precision[np.ix_(unknown, unknown)])
    mean = -covariance @ precision[np.ix_(unknown, known)] @ HEIGHTS[~np.isnan(HEIGHTS)]
    drawn = np.concatenate([samples["mean"][..., None], samples["missing"]], axis=-1)
    for place in range(3):
        assert_moments(drawn[..., place], mean[place], np.sqrt(covariance[place, place]))
