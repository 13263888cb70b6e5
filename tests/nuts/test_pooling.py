"""Pooled warm-up: what is one stretch, who stands still, and chains that would be left behind."""

import os

import numpy as np
import pytest
import tensorflow as tf

from pcbatch import nuts
from pcbatch.nuts.adaptation import adaptation, pooling
from pcbatch.nuts.adaptation.adaptation import CLOSE, LAST, STEP, WINDOW, Averaging
from pcbatch.nuts.kernel.metrics import Window, add_draw, window_for
from tests.nuts.demos import load
from tests.nuts.densities import QUIET
from tests.nuts.posteriors import POSTERIORS


def stretches(actions):
    done, found = 0, []
    while done < len(actions):
        found.append(pooling.stretch(actions, done))
        done += found[-1]
    assert done == len(actions)
    return found


def test_a_stretch_ends_with_a_window_and_with_the_warm_up():
    actions = np.array([STEP] * 7 + [WINDOW] * 11 + [CLOSE] + [WINDOW] * 3 + [CLOSE] + [STEP] * 49 + [LAST])
    assert stretches(actions) == [5, 2, 5, 5, 1, 1, 3, 1, *[5] * 9, 4, 1]
    assert stretches(actions[:6]) == [1] * 6, "the last stretch is short, for updates enough"


@pytest.mark.parametrize("warmup", [1, 10, 19, 20, 100, 151, 300, 1000])
def test_the_last_stretch_has_ten_updates_or_as_many_as_trajectories(warmup):
    actions = adaptation.plan(warmup)
    closed = np.flatnonzero(actions == CLOSE)
    ends = np.cumsum(stretches(actions))
    last = len(actions) - (closed[-1] + 1 if closed.size else 0)
    assert np.count_nonzero(ends > len(actions) - last) >= min(10, last)


def test_a_step_size_that_has_not_settled_is_not_kept():
    averaging = Averaging(log_step=0.0, log_step_mean=3.0, error_mean=0.0, count=9.0, anchor=np.log(2 * 0.25))
    np.testing.assert_allclose(np.exp(pooling.kept(averaging)), 0.25)
    assert pooling.kept(averaging._replace(count=10.0)) == 3.0


@pytest.mark.parametrize("inverse", [np.ones(3), np.eye(3)], ids=["diagonal", "dense"])
def test_the_windows_of_chains_are_joined(inverse):
    """All draws of the chosen chains in one window; those of a chain that is not finite are left out."""
    draws = np.random.default_rng(5).normal([1e3, 0.0, -5.0], size=(5, 8, 3))
    draws[3, 2, 1] = np.nan

    def window_of(rows):
        window = Window(*map(tf.constant, window_for(inverse)))
        for row in rows:
            window = add_draw(window, tf.constant(row), tf.constant(row**2))
        return Window(*(part.numpy() for part in window))

    first, chains = window_of(draws[0]), [window_of(each) for each in draws[1:]]
    together = Window(*(np.stack(parts) for parts in zip(*chains, strict=True)))
    found = pooling.joined(first, together, np.array([True, False, True, True]))
    expected = window_of(draws[[0, 1, 4]].reshape(-1, 3))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)
    empty = window_for(inverse)
    nothing = pooling.joined(empty, together, np.zeros(4, bool))
    assert all((one == other).all() for one, other in zip(nothing, empty, strict=True))


def test_who_stands_still():
    def found(acceptance, together):
        return pooling.stand_still(np.array(acceptance), np.array(together, bool)).tolist()

    assert found([0.0, 0.8, 0.9], [1, 1, 1]) == [True, False, False]
    assert found([0.0, 0.2, 0.3], [1, 1, 1]) == [False] * 3, "the step is too long for all"
    assert found([0.0, 0.9, 0.2], [1, 0, 1]) == [False] * 3, "it is, for those who take it"
    assert found([0.0, 0.9, np.nan], [0, 1, 1]) == [True, False, False]
    assert found([np.nan, np.nan], [1, 1]) == [False, False]


def quartic(q):
    """Steep far out: where q is 30 a leapfrog step must be a thirtieth of what it is at the mode."""
    return -0.25 * tf.reduce_sum(q**4)


@pytest.mark.parametrize("far", [pooling.FAR, 0.0])
def test_a_chain_far_out_comes_in_and_goes_with_the_others(monkeypatch, far):
    """With a short step from the beginning, or (`far` 0) after it has stood still for a while."""
    monkeypatch.setattr(pooling, "FAR", far)
    starts = np.zeros((8, 2))
    starts[5] = 30.0
    options = {"chains": 8, "initial_per_chain": starts, "warmup": 100, "draws": 40, "seed": 1, "chunk": 8, **QUIET}
    samples = nuts.sample(quartic, starts[0], adapt="pooled", save_warmup=True, jit=False, **options)
    assert (samples["x"][5] != 30.0).all()
    assert (samples.sample_stats["acceptance_rate"].mean(axis=1) > 0.5).all()
    assert len(np.unique(samples.sample_stats["step_size"])) == 1, "it has come in long ago"
    steps = samples.warmup_sample_stats["step_size"]
    alone = steps[5] != steps[0]
    assert alone[:5].all() == (far > 0)
    assert alone[5:10].all()
    assert (np.delete(steps, 5, axis=0) == steps[0]).all()
    assert (samples.inverse_mass_matrix < 1.5).all(), "where it came from is not where the density is"


def jobs(folder):
    """Density, where to start and data of the four posteriors on which no chain may freeze."""
    demo = load("breast_cancer")
    yield "breast_cancer", demo.log_density, demo.INITIAL, {"data": demo.load()[0]}
    for name in ("eight_schools", "mesquite", "autoregression"):
        posterior = POSTERIORS[name]
        options = {"data": posterior.data(folder), "bijectors": posterior.bijectors, "dtype": tf.float64}
        yield name, posterior.log_density, posterior.initial, options


@pytest.mark.slow
def test_no_chain_freezes(pcbatch_data, record_property):
    """Five seeds each, or as many as PCBATCH_SEEDS says.

    Without limits of their own, a chain of the first posterior stood still under seeds 1 and 3, with Stan's diagonal.
    """
    for name, log_density, initial, options in jobs(pcbatch_data):
        for seed in range(int(os.environ.get("PCBATCH_SEEDS", "5"))):
            samples = nuts.sample(
                log_density, initial, chains=32, warmup=300, draws=200, seed=seed, adapt="pooled", **QUIET, **options
            )
            acceptance = samples.sample_stats["acceptance_rate"].mean(axis=1)
            late = samples.sample_stats["lp"][:, 100:]
            record_property(f"{name}, seed {seed}", f"lowest acceptance of a chain {acceptance.min():.2f}")
            assert (acceptance > 0.3).all(), (name, seed)
            assert (np.ptp(late, axis=1) > 0).all(), (name, seed)
            assert not [text for text in samples.warnings if "stand still" in text], (name, seed)
