"""Densities whose answers are known: the funnel, simulation-based calibration, a dense metric, the faster kernels."""

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.nuts import calibration
from pcbatch import nuts
from pcbatch.nuts.parameters.parameters import layout_of
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.results import diagnostics
from pcbatch.nuts.running import density_programs
from tests.nuts.densities import QUIET, assert_near


def funnel(p):
    """Neal's funnel, x ~ normal(0, exp(v / 2)) with v ~ normal(0, 3), in the form that a sampler can reach all of."""
    return -0.5 * (p["v"] / 3.0) ** 2 - 0.5 * tf.reduce_sum(p["z"] ** 2)


def centred_funnel(p):
    """The same in x itself: where v is small, x has no room."""
    v, x = p["v"], p["x"]
    return -0.5 * (v / 3.0) ** 2 - 0.5 * tf.reduce_sum(x**2) * tf.exp(-v) - 0.5 * x.shape[0] * v


@pytest.mark.slow
def test_the_funnel_is_right_where_it_can_be_and_warned_of_where_not():
    options = {"chains": 32, "warmup": 500, "draws": 500, "seed": 2, "dtype": tf.float64, **QUIET}
    samples = nuts.sample(funnel, {"v": 0.0, "z": np.zeros(9)}, **options)
    assert_near(samples["v"].mean(axis=1), 0.0)
    assert_near((samples["v"] ** 2).mean(axis=1), 9.0)
    assert samples.warnings == ()
    with pytest.warns(nuts.SamplerWarning, match="trajectories diverged"):
        centred = nuts.sample(centred_funnel, {"v": 0.0, "x": np.zeros(9)}, **options)
    energies = diagnostics.energy_fractions(centred.sample_stats["energy"])
    assert np.median(energies) < np.median(diagnostics.energy_fractions(samples.sample_stats["energy"]))


@pytest.mark.slow
@pytest.mark.parametrize("name", calibration.MODELS)
def test_ranks_of_the_truth_are_uniform(name):
    """Simulation-based calibration; `benchmarks/nuts/calibration.py` makes 500 replications."""
    for label, found in calibration.ranks(calibration.MODELS[name], 100, seed=4).items():
        assert calibration.distance(found) < calibration.SUSPECT, (label, calibration.histogram(found))


COVARIANCE = np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 4.0]])


def correlated(q, precision):
    return -0.5 * tf.reduce_sum(q * tf.linalg.matvec(precision, q))


@pytest.mark.slow
@pytest.mark.parametrize("adapt", ["per_chain", "pooled"])
@pytest.mark.parametrize("kernel", ["multinomial", "slice"])
def test_a_dense_metric_learns_correlations(adapt, kernel):
    options = {"chains": 16, "warmup": 400, "draws": 200, "metric": "dense", "adapt": adapt, "kernel": kernel, **QUIET}
    samples = nuts.sample(correlated, np.zeros(3), data=np.linalg.inv(COVARIANCE), **options)
    learned = samples.inverse_mass_matrix
    assert learned.shape == (16, 3, 3)
    assert (learned[:, 0, 1] > 0.9 * np.sqrt(learned[:, 0, 0] * learned[:, 1, 1])).all()
    assert samples.sample_stats["n_steps"].mean() < 8  # with the unit metric, or a diagonal one, more than 20
    products = np.einsum("cdi,cdj->cdij", samples["x"], samples["x"])
    assert_near(products.mean(axis=1), COVARIANCE)


def test_the_faster_kernels_are_found_and_recorded(monkeypatch):
    times = {True: 2.0, False: 1.0}
    transform = Transform.of(layout_of(np.zeros(3)), None)
    point = np.zeros((4, 3))

    def timed(gradients, jit, *arguments):
        assert programs_seconds(gradients, jit, *arguments) > 0
        value, gradient = gradients(*arguments)
        assert (value.shape, gradient.shape) == ((4,), (4, 3))
        return times[jit]

    programs_seconds = density_programs.seconds
    monkeypatch.setattr(density_programs, "seconds", timed)
    assert density_programs.faster(correlated, transform, np.eye(3), point) is False
    times[False] = 3.0
    assert density_programs.faster(correlated, transform, np.eye(3), point) is True


def half_normal(q):
    return -0.5 * tf.reduce_sum(q * q)


@pytest.mark.slow
def test_the_choice_is_in_the_settings(tmp_path):
    options = {"chains": 4, "draws": 3, "warmup": 0, "step_size": 0.7, "max_tree_depth": 3, "chunk": 3, **QUIET}
    samples = nuts.sample(half_normal, np.zeros(2), jit="auto", **options)
    assert samples.settings.jit in (True, False)
    samples.save(tmp_path / "samples.npz")
    again = nuts.resume(tmp_path / "samples.npz", draws=3, progress=False)
    assert again.settings.jit is samples.settings.jit
    assert again.stats.compilations == samples.stats.compilations
