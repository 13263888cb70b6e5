"""Posteriors whose distributions are known: means, squares, and the shares below the 5% and the 95% quantile."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from pcbatch import nuts
from tests.nuts.densities import QUIET

pytestmark = pytest.mark.slow  # `test_sampling.py` and `test_chain.py` have exact moments, quickly
SCALES = np.geomspace(1.0, 100.0, 5)  # condition number 1e4
ROTATION = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]


def stretched(x):
    """Normal numbers of these scales."""
    return -0.5 * tf.reduce_sum((x / SCALES) ** 2)


def rotated(x):
    """The same along other axes, which a dense metric can learn."""
    return stretched(tf.linalg.matvec(ROTATION, x))


def funnel(p):
    """Neal's funnel by what it is made of."""
    return -0.5 * (p["v"] / 3.0) ** 2 - 0.5 * tf.reduce_sum(p["z"] ** 2)


def banana(p):
    """A normal number, and one around its square."""
    return -0.5 * p["x"] ** 2 - 0.5 * ((p["y"] - p["x"] ** 2) / 0.5) ** 2


def truncated(x):
    return -0.5 * x**2


def dirichlet(x):
    return tf.reduce_sum((np.array([0.5, 1.0, 3.0]) - 1.0) * tf.math.log(x))


def by_place(samples, known):
    return [(samples["x"][..., k], each) for k, each in enumerate(known)]


POSTERIORS = {
    "condition 1e4": (stretched, np.zeros(5), {}, lambda s: by_place(s, [stats.norm(0, scale) for scale in SCALES])),
    "ends by half": (
        stretched,
        np.zeros(5),
        {"end_weight": 0.5},
        lambda s: by_place(s, [stats.norm(0, scale) for scale in SCALES]),
    ),
    "condition 1e4, rotated": (
        rotated,
        np.zeros(5),
        {"metric": "dense"},
        lambda s: [(s["x"] @ ROTATION[k], stats.norm(0, scale)) for k, scale in enumerate(SCALES)],
    ),
    "funnel": (
        funnel,
        {"v": 0.0, "z": np.zeros(3)},
        {},
        lambda s: [(s["v"], stats.norm(0, 3)), *((s["z"][..., k], stats.norm()) for k in range(3))],
    ),
    "banana": (
        banana,
        {"x": 0.0, "y": 0.0},
        {"target_accept": 0.9},
        lambda s: [(s["x"], stats.norm()), (2.0 * (s["y"] - s["x"] ** 2), stats.norm()), (s["x"] ** 2, stats.chi2(1))],
    ),
    "truncated": (
        truncated,
        0.7,
        {"bijectors": {"x": nuts.interval(0.5, 2.5)}},
        lambda s: [(s["x"], stats.truncnorm(0.5, 2.5))],
    ),
    "half": (truncated, 0.7, {"bijectors": {"x": nuts.lower(0.5)}}, lambda s: [(s["x"], stats.truncnorm(0.5, np.inf))]),
    "simplex": (
        dirichlet,
        np.full(3, 1 / 3),
        {"bijectors": {"x": nuts.simplex}},
        lambda s: by_place(s, [stats.beta(a, 4.5 - a) for a in (0.5, 1.0, 3.0)]),
    ),
}


@pytest.mark.parametrize("name", POSTERIORS)
def test_distributions(name):
    """One z for each figure, from the means of chains that do not depend on each other; below 4."""
    density, initial, options, known = POSTERIORS[name]
    samples = nuts.sample(
        density, initial, chains=64, warmup=500, draws=250, seed=6, dtype=tf.float64, **{**QUIET, **options}
    )
    assert not samples.failed
    for draws, distribution in known(samples):
        figures = {
            "mean": (draws, distribution.mean()),
            "square": (draws**2, distribution.var() + distribution.mean() ** 2),
            **{share: (draws < distribution.ppf(share), share) for share in (0.05, 0.95)},
        }
        for figure, (values, wanted) in figures.items():
            chains = values.mean(axis=1)
            z = (chains.mean() - wanted) / (chains.std(ddof=1) / np.sqrt(len(chains)))
            assert abs(z) < 4, (figure, z)
