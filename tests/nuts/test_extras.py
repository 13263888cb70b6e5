"""`extra=`: quantities of each draw, and where ArviZ finds them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

import pcbatch
from pcbatch import UsageError, nuts
from pcbatch.nuts.parameters.parameters import layout_of
from pcbatch.nuts.parameters.transform import Transform
from pcbatch.nuts.running import extras, sampling_run
from pcbatch.nuts.running.starts import key_pairs
from tests.nuts.densities import QUIET
from tests.nuts.test_samples import SETTINGS

DATA = np.array([0.5, 1.5, -1.0])
INITIAL = {"mean": 0.0, "weights": np.zeros(2)}


def density(p, y):
    return -0.5 * tf.reduce_sum((y - p["mean"]) ** 2) - 0.5 * tf.reduce_sum(p["weights"] ** 2)


def quantities(p, y, key):
    """Pointwise likelihoods, a prediction, and a quantity of two parameters."""
    noise = pcbatch.random.normal(key, [3], dtype=tf.float64)
    return {
        "log_likelihood": {"y": -0.5 * (y - p["mean"]) ** 2},
        "posterior_predictive": {"y": p["mean"] + noise},
        "sum": p["mean"] + p["weights"],
        "above": p["mean"] > 0.0,
        "root": rooted(p["mean"]),
    }


@pcbatch.autobatch
def rooted(x):
    return tf.sqrt(x) if x > 0.0 else 0.0 * x


@pytest.fixture(scope="module")
def samples():
    """Draws made by hand, one chain of which has failed."""
    rng = np.random.default_rng(2)
    posterior = {"mean": rng.normal(size=(4, 14)), "weights": rng.normal(size=(4, 14, 2))}
    for draws in posterior.values():
        draws[1] = np.nan
    transform = Transform.of(layout_of(INITIAL), None)
    origin = SimpleNamespace(data=DATA, transform=transform, keys=key_pairs(3, 4)[:, 1])
    stats = {name: np.zeros((4, 14)) for name in ("lp", "diverging")}
    made = nuts.Samples(posterior, stats, {}, {}, nuts.Cost(1, 1), None, SETTINGS, {1: "no"}, False, origin)
    return replace(made, extra=extras.computed(quantities, made))


def test_they_are_those_of_each_draw(samples):
    assert np.isnan(samples.extra["sum"][1]).all()
    assert not samples.extra["above"][1].any()
    extra = {name: array[samples.healthy] for name, array in samples.extra.items()}
    mean, weights = samples["mean"][samples.healthy], samples["weights"][samples.healthy]
    assert set(extra) == {"log_likelihood.y", "posterior_predictive.y", "sum", "above", "root"}
    np.testing.assert_allclose(extra["log_likelihood.y"], -0.5 * (DATA - mean[..., None]) ** 2)
    np.testing.assert_allclose(extra["sum"], mean[..., None] + weights)
    np.testing.assert_array_equal(extra["above"], mean > 0)
    np.testing.assert_allclose(extra["root"], np.sqrt(np.maximum(mean, 0)))
    noise = extra["posterior_predictive.y"] - mean[..., None]
    assert len(np.unique(noise)) == noise.size
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert 0.7 < noise.std() < 1.3


def test_arviz_has_them_in_their_groups(samples):
    dims, coords = {"weights": ["side"], "y": ["seen"]}, {"side": ["left", "right"], "seen": ["a", "b", "c"]}
    converted = samples.to_arviz(dims=dims, coords=coords)
    np.testing.assert_array_equal(converted["log_likelihood"]["y"], samples.extra["log_likelihood.y"])
    assert converted["posterior_predictive"]["y"].dims == ("chain", "draw", "seen")
    assert set(converted["posterior"].data_vars) == {"mean", "weights", "sum", "above", "root"}
    left = converted["posterior"]["weights"].sel(side="left")
    np.testing.assert_array_equal(left, samples["weights"][..., 0])
    assert "weights[left]" in samples.summary(dims=dims, coords=coords).index


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"dims": {"wheights": ["side"]}}, "dims names 'wheights', and the arrays are mean, weights"),
        ({"dims": {"weights": "side"}}, "dims of 'weights' must be 1 names, not 'side'"),
        ({"dims": {"weights": ["n"], "sum": ["n"], "log_likelihood.y": ["n"]}}, "the axis 'n' has 2 places elsewhere"),
        ({"dims": {"weights": ["n"]}, "coords": {"n": ["a"]}}, "coords of 'n' must be 2 labels, not 1"),
    ],
)
def test_names_of_axes_that_do_not_fit(samples, axes, message):
    with pytest.raises(UsageError, match=f"PCB551: {message}"):
        samples.to_arviz(**axes)


@pytest.mark.slow
def test_a_resumed_run_computes_them_of_all_draws(tmp_path):
    options = {"chains": 3, "warmup": 20, "draws": 14, "chunk": 14, "data": DATA, **QUIET}
    samples = nuts.sample(density, INITIAL, extra=quantities, **options)
    samples.save(tmp_path / "samples.npz")
    assert nuts.resume(tmp_path / "samples.npz", **QUIET).extra == {}
    longer = nuts.resume(tmp_path / "samples.npz", draws=3, extra=quantities, **QUIET)
    assert longer.extra["sum"].shape == (3, 17, 2)
    for name, array in samples.extra.items():
        np.testing.assert_array_equal(longer.extra[name][:, :14], array)


@pytest.mark.slow
def test_draws_for_which_it_fails_are_nan():
    def failing(p, y):
        assert p["mean"] > 0.0, "below"
        return {"root": tf.sqrt(p["mean"])}

    options = {"chains": 3, "warmup": 20, "draws": 14, "chunk": 14, "data": DATA, **QUIET}
    found = nuts.sample(density, INITIAL, extra=failing, **options)
    below = found["mean"] <= 0
    assert below.any()
    np.testing.assert_array_equal(np.isnan(found.extra["root"]), below)


def test_functions_that_are_none_are_refused_before_anything_is_sampled(monkeypatch):
    options = {"chains": 2, "warmup": 0, "draws": 2, "step_size": 0.5, "data": DATA, **QUIET}
    for extra, message in ((1.0, "extra must be a function"), (lambda p: p, "extra is called with the parameters and")):
        with pytest.raises(UsageError, match=f"PCB551: {message}"):
            nuts.sample(density, INITIAL, extra=extra, **options)
    monkeypatch.setattr(sampling_run.SamplingRun, "run", lambda *given: pytest.fail("sampled"))
    with pytest.raises(pcbatch.CompileError, match=r"test_extras.py(?s:.*)reduce_sums"):
        nuts.sample(density, INITIAL, extra=lambda p, y: tf.reduce_sums(y), **options)
