"""`pcbatch.nuts.sample`: right moments, right counts, chains apart, nothing compiled twice."""

import arviz
import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import nuts

MEAN = np.array([1.0, -2.0])
COVARIANCE = np.array([[1.0, 0.8], [0.8, 2.0]])


def gaussian(q, data):
    mean, precision = data
    centred = q - mean
    return -0.5 * tf.reduce_sum(centred * tf.linalg.matvec(precision, centred))


def gaussian_data(mean=MEAN, covariance=COVARIANCE):
    return mean, np.linalg.inv(covariance)


def exact_draws(chains, seed):
    return np.random.default_rng(seed).multivariate_normal(MEAN, COVARIANCE, size=chains)


def assert_near(per_chain, expected):
    """The mean over independent chains is within 4 of its own standard errors of the truth."""
    error = per_chain.std(axis=0, ddof=1) / np.sqrt(len(per_chain))
    np.testing.assert_array_less(np.abs(per_chain.mean(axis=0) - expected), 4 * error)


@pytest.fixture(scope="module")
def samples():
    return nuts.sample(
        gaussian,
        MEAN,
        data=gaussian_data(),
        chains=500,
        draws=20,
        step_size=0.6,
        seed=3,
        initial_per_chain=exact_draws(500, 8),
        chunk=20,
    )


def test_moments_of_a_correlated_gaussian(samples):
    """Chains start from exact draws, so every later draw must be one too; and chains are independent of each other."""
    x = samples["x"] - MEAN
    assert_near(x.mean(axis=1), [0.0, 0.0])
    assert_near((x**2).mean(axis=1), np.diag(COVARIANCE))
    assert_near((x[..., 0] * x[..., 1]).mean(axis=1), COVARIANCE[0, 1])
    assert_near((x[..., 0] ** 3 * x[..., 1]).mean(axis=1), 3 * COVARIANCE[0, 0] * COVARIANCE[0, 1])


def test_draws_decorrelate(samples):
    x = samples["x"] - MEAN
    lagged = (x[:, 1:] * x[:, :-1]).mean() / (x**2).mean()
    assert lagged < 0.5


def test_statistics_under_arvizs_names(samples):
    stats = samples.sample_stats
    names = {"acceptance_rate", "diverging", "energy", "lp", "n_steps", "step_size", "tree_depth"}
    assert set(stats) == names
    assert all(array.shape == (500, 20) for array in stats.values())
    centred = samples["x"] - MEAN
    lp = -0.5 * np.einsum("cdi,ij,cdj->cd", centred, np.linalg.inv(COVARIANCE), centred)
    np.testing.assert_allclose(stats["lp"], lp, rtol=1e-9, atol=1e-12)
    assert np.all(stats["energy"] >= -stats["lp"])
    assert np.all((stats["acceptance_rate"] > 0) & (stats["acceptance_rate"] <= 1))
    assert np.all(stats["n_steps"] >= 2 ** stats["tree_depth"] - 1)
    assert np.all(stats["n_steps"] <= 2 ** (stats["tree_depth"] + 1) - 1)
    assert not stats["diverging"].any()


def test_gradients_are_counted(samples):
    cost = samples.cost
    assert cost.gradients == samples.sample_stats["n_steps"].sum() + 500
    assert cost.gradients <= cost.rows
    assert cost.rows % 500 == 0


def test_arviz_takes_them(samples):
    table = arviz.summary(samples.to_arviz(), var_names=["x"], round_to="none")
    np.testing.assert_allclose(table["mean"], samples["x"].mean(axis=(0, 1)), rtol=1e-6)
    assert table["r_hat"].max() < 1.1


def test_new_data_seed_and_number_of_draws_compile_nothing(samples):
    again = nuts.sample(
        gaussian,
        MEAN,
        data=gaussian_data(MEAN + 10, 2 * COVARIANCE),
        chains=500,
        draws=3,
        step_size=0.5,
        seed=4,
        initial_per_chain=exact_draws(500, 8) + 10,
        chunk=20,
    )
    assert again["x"].shape == (500, 3, 2)
    assert again.stats.compilations == samples.stats.compilations


def test_chunks_continue_each_other():
    options = {"data": gaussian_data(), "chains": 3, "draws": 7, "step_size": 0.6, "seed": 3, "init": "exact"}
    whole, parts = (nuts.sample(gaussian, MEAN, chunk=chunk, **options) for chunk in (7, 3))
    np.testing.assert_allclose(parts["x"], whole["x"], rtol=1e-9)
    assert len(parts.runs) == 3


def test_a_chain_does_not_depend_on_the_others():
    options = {"data": gaussian_data(), "draws": 7, "step_size": 0.6, "seed": 3, "chunk": 7}
    few, more = (nuts.sample(gaussian, MEAN, chains=chains, **options) for chains in (2, 5))
    np.testing.assert_allclose(more["x"][:2], few["x"], rtol=1e-9)
    assert not np.allclose(more["x"][2:4], few["x"])


def test_parameters_in_a_structure_without_data():
    def density(parameters):
        return -0.5 * (parameters["a"] ** 2 + tf.reduce_sum((parameters["b"] - 3.0) ** 2))

    initial = {"a": 0.0, "b": np.full((2, 2), 3.0, np.float32)}
    samples = nuts.sample(density, initial, chains=200, draws=10, step_size=0.8, chunk=10)
    assert {name: array.shape for name, array in samples.items()} == {"a": (200, 10), "b": (200, 10, 2, 2)}
    assert samples["b"].dtype == np.float32
    assert_near(samples["b"][:, 5:].mean(axis=1), np.full((2, 2), 3.0))


def test_a_chain_that_cannot_start_fails_alone():
    def half_line(q):
        return tf.where(q > 0, -q, tf.constant(-np.inf, q.dtype))

    options = {"chains": 3, "draws": 5, "step_size": 0.5, "chunk": 5}
    with pytest.warns(RuntimeWarning, match=r"1 of 3 chains failed \(\[1\]\).*not finite at the initial position"):
        samples = nuts.sample(half_line, 1.0, initial_per_chain=np.array([1.0, -1.0, 2.0]), **options)
    assert np.isnan(samples["x"][1]).all()
    assert (samples["x"][[0, 2]] > 0).all()
    with pytest.raises(ValueError, match="3 of 3 chains failed"):
        nuts.sample(half_line, -1.0, init="exact", **options)


@pytest.mark.parametrize("change", [{"chains": 0}, {"step_size": 0.0}, {"init": "somewhere"}, {"max_tree_depth": 0}])
def test_options_that_make_no_sense(change):
    with pytest.raises(pcbatch.UsageError, match="PCB551"):
        nuts.sample(gaussian, MEAN, **{"data": gaussian_data(), "step_size": 0.5, **change})


def test_starting_points_of_the_wrong_shape():
    with pytest.raises(pcbatch.UsageError, match="initial_per_chain"):
        nuts.sample(gaussian, MEAN, data=gaussian_data(), step_size=0.5, chains=3, initial_per_chain=np.zeros((2, 2)))
