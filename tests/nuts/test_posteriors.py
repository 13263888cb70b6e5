"""Real posteriors against posteriordb's reference draws: means and deviations within 4 combined standard errors."""

from __future__ import annotations

import arviz
import numpy as np
import pytest
import tensorflow as tf

from pcbatch import nuts
from tests.nuts.posteriors import POSTERIORS


def sampled(name, folder, **options):
    posterior = POSTERIORS[name]
    return nuts.sample(
        posterior.log_density,
        posterior.initial,
        data=posterior.data(folder),
        bijectors=posterior.bijectors,
        dtype=tf.float64,
        progress=False,
        **posterior.options,
        **options,
    )


def errors_in_errors(name, folder, samples):
    """Figure and parameter to its distance from the reference, in combined standard errors; effective sizes, R-hats."""
    draws = POSTERIORS[name].draws(samples)
    table = arviz.summary(draws, round_to="none", kind="all")
    reference = POSTERIORS[name].reference(folder)
    assert set(reference) == set(draws)
    found = {}
    for parameter, expected in reference.items():
        for figure in ("mean", "sd"):
            ours, error = table.loc[parameter, figure], table.loc[parameter, f"mcse_{figure}"]
            found[figure, parameter] = (ours - expected[figure]) / np.hypot(error, expected[f"mcse_{figure}"])
    return found, table["ess_bulk"], table["r_hat"]


@pytest.mark.slow  # `test_breast_cancer.py` is the posterior that is always sampled
def test_a_short_run_is_where_the_reference_is(pcbatch_data):
    samples = sampled("eight_schools", pcbatch_data, chains=16, warmup=150, draws=100, seed=1)
    found, _, r_hat = errors_in_errors("eight_schools", pcbatch_data, samples)
    assert r_hat.max() < 1.05
    assert max(map(abs, found.values())) < 4, found


@pytest.mark.slow
@pytest.mark.parametrize("name", POSTERIORS)
def test_a_long_run_agrees_with_the_reference(name, pcbatch_data, record_property):
    samples = sampled(name, pcbatch_data, chains=16, warmup=1000, draws=1000, seed=1, target_accept=0.9)
    found, sizes, r_hat = errors_in_errors(name, pcbatch_data, samples)
    worst = max(found, key=lambda key: abs(found[key]))
    text = f"bulk ESS {sizes.min():.0f}, R-hat {r_hat.max():.4f}, farthest {worst}: {found[worst]:.2f} errors"
    record_property(f"posteriordb {name}", text)
    assert sizes.min() >= 4000, text
    assert r_hat.max() < 1.01, text
    assert abs(found[worst]) < 4, text
