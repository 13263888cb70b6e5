"""Simulation-based calibration: truths from the prior, data from the truth, ranks of the truth among draws.

Talts et al., "Validating Bayesian inference algorithms with simulation-based calibration", arXiv:1804.06788, 2018. If
posteriors are right, ranks are uniform. `python -m benchmarks.nuts.calibration` prints a table of 500 replications of
three models; `--page` writes `docs/figures/nuts-calibration.md`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import nuts

PAGE = Path(__file__).parents[2] / "docs" / "figures" / "nuts-calibration.md"
CHAINS, DRAWS, THIN = 3, 33, 4
"""99 draws, so that a rank is one of 100."""
BINS = 10
SUSPECT = 27.88
"""The 0.999 quantile of the chi-squared distribution with 9 degrees of freedom."""

PROSE = f"""# Calibration of the sampler

Written by `python -m benchmarks.nuts.calibration --page`, with {{replications}} replications. In each one parameters
are drawn from the prior, data from these parameters, and {CHAINS * DRAWS} draws from the posterior of the data. If
the sampler is right, the rank of the true value among the draws is uniform: each bin has about {{each}} of them.
Chi-squared is below {SUSPECT:.1f} for 999 of 1,000 such histograms.

{{table}}
"""


@dataclass(frozen=True)
class Model:
    """A model whose parameters and data can be simulated."""

    density: Callable[[Any, Any], Any]
    prior: Callable[[np.random.Generator], dict[str, Any]]
    simulated: Callable[[np.random.Generator, Mapping[str, Any]], Any]
    initial: Mapping[str, Any]
    bijectors: Mapping[str, Any]


def counts(p: Any, y: Any) -> Any:
    """Five counts of one rate, which is gamma(2, 1)."""
    return (1.0 + tf.reduce_sum(y)) * tf.math.log(p["rate"]) - 6.0 * p["rate"]


def groups(p: Any, y: Any) -> Any:
    """Six groups around a mean that is normal, their spread exponential, each seen once with noise 1."""
    effects = p["mean"] + p["spread"] * p["z"]
    prior = -0.5 * p["mean"] ** 2 - p["spread"] - 0.5 * tf.reduce_sum(p["z"] ** 2)
    return prior - 0.5 * tf.reduce_sum((y - effects) ** 2)


def shares(p: Any, y: Any) -> Any:
    """Counts of four kinds, whose shares are Dirichlet(1, 1, 2, 3)."""
    return tf.reduce_sum((y + np.array([0.0, 0.0, 1.0, 2.0])) * tf.math.log(p["shares"]))


MODELS = {
    "counts": Model(
        counts,
        lambda rng: {"rate": rng.gamma(2.0)},
        lambda rng, p: rng.poisson(p["rate"], 5).astype(float),
        {"rate": 1.0},
        {"rate": nuts.positive},
    ),
    "groups": Model(
        groups,
        lambda rng: {"mean": rng.normal(), "spread": rng.exponential(), "z": rng.normal(size=6)},
        lambda rng, p: p["mean"] + p["spread"] * p["z"] + rng.normal(size=6),
        {"mean": 0.0, "spread": 1.0, "z": np.zeros(6)},
        {"spread": nuts.positive},
    ),
    "shares": Model(
        shares,
        lambda rng: {"shares": rng.dirichlet([1.0, 1.0, 2.0, 3.0])},
        lambda rng, p: rng.multinomial(20, p["shares"]).astype(float),
        {"shares": np.full(4, 0.25)},
        {"shares": nuts.simplex},
    ),
}


def ranks(model: Model, replications: int, seed: int = 0, **options: Any) -> dict[str, np.ndarray]:
    """The ranks of the truths among 99 draws each, by number: int `[replications]`, from 0 to 99."""
    rng, found = np.random.default_rng(seed), {}
    for replication in range(replications):
        truth = model.prior(rng)
        samples = nuts.sample(
            model.density,
            dict(model.initial),
            data=model.simulated(rng, truth),
            bijectors=dict(model.bijectors),
            **{"chains": CHAINS, "draws": DRAWS, "thin": THIN, "warmup": 150, "seed": replication, **options},
            dtype=tf.float64,
            progress=False,
        )
        for name, draws in samples.items():
            below = np.count_nonzero(draws < truth[name], axis=(0, 1))
            for place in np.ndindex(below.shape):
                label = f"{name}[{', '.join(map(str, place))}]" if place else name
                found.setdefault(label, []).append(int(below[place]))
    return {name: np.array(each) for name, each in found.items()}


def histogram(found: np.ndarray) -> np.ndarray:
    """The number of ranks in each of the bins."""
    return np.histogram(found, BINS, (0, CHAINS * DRAWS + 1))[0]


def distance(found: np.ndarray) -> float:
    """Chi-squared of the histogram from a uniform one, with BINS - 1 degrees of freedom."""
    expected = len(found) / BINS
    return float(((histogram(found) - expected) ** 2 / expected).sum())


def table(replications: int) -> str:
    """The histograms of all numbers of all models, in Markdown."""
    lines = ["| model | number | ranks 0-9, 10-19, .., 90-99 | chi-squared |", "|---|---|---|---:|"]
    for name, model in MODELS.items():
        for label, found in ranks(model, replications).items():
            bars = " ".join(map(str, histogram(found)))
            lines.append(f"| {name} | `{label}` | {bars} | {distance(found):.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, and write the page where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nuts.SamplerWarning)
        found = table(given.replications)
    text = PROSE.format(replications=given.replications, each=given.replications // BINS, table=found)
    print(text)
    if given.page:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
