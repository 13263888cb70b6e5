"""Eight schools: a hierarchical model with a positive scale, from a structure of parameters to a table.

    python examples/nuts/eight_schools.py [--chains 16] [--draws 500]

Look at `log_density`, written for one chain on named parameters; at the bijector that keeps `tau` positive, so that the
density never sees another value; and at what the sampler says of itself. Of the two ways to write the model, the other,
`--centred`, is the classic case of a posterior that the sampler cannot reach all of: it warns of divergences.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pcbatch import nuts

EFFECTS = np.array([28, 8, -3, 7, -1, 1, 18, 12], np.float64)
ERRORS = np.array([15, 10, 16, 11, 9, 11, 10, 18], np.float64)
"""Estimated effects of coaching on test scores, and their standard errors (Rubin, 1981)."""


def prior(mu: tf.Tensor, tau: tf.Tensor) -> tf.Tensor:
    """The priors: mu ~ normal(0, 5), tau ~ half-Cauchy(0, 5), up to a constant."""
    return -0.5 * (mu / 5.0) ** 2 - tf.math.log1p((tau / 5.0) ** 2)


def log_density(p: dict[str, tf.Tensor], data: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    """School i's effect is mu + tau z[i] with z standard normal."""
    effects, errors = data
    theta = p["mu"] + p["tau"] * p["z"]
    fit = -0.5 * tf.reduce_sum(((effects - theta) / errors) ** 2)
    return prior(p["mu"], p["tau"]) - 0.5 * tf.reduce_sum(p["z"] ** 2) + fit


def centred(p: dict[str, tf.Tensor], data: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    """The same model in its effects, theta[i] ~ normal(mu, tau): a funnel where tau is small."""
    effects, errors = data
    spread = -0.5 * tf.reduce_sum(((p["theta"] - p["mu"]) / p["tau"]) ** 2) - 8.0 * tf.math.log(p["tau"])
    return prior(p["mu"], p["tau"]) + spread - 0.5 * tf.reduce_sum(((effects - p["theta"]) / errors) ** 2)


def sample(is_centred: bool, chains: int, draws: int, seed: int, **options: Any) -> nuts.Samples:
    """Draws of either way to write it."""
    name, density = ("theta", centred) if is_centred else ("z", log_density)
    return nuts.sample(
        density,
        {"mu": 0.0, "tau": 1.0, name: np.zeros(8)},
        data=(EFFECTS, ERRORS),
        bijectors={"tau": nuts.positive},
        chains=chains,
        warmup=500,
        draws=draws,
        seed=seed,
        target_accept=0.9,
        **options,
    )


def main(arguments: list[str] | None = None) -> None:
    """Sample, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=16)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--centred", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("out/eight_schools"))
    options = parser.parse_args(arguments)
    samples = sample(options.centred, options.chains, options.draws, options.seed)
    print(samples.summary().to_string(float_format="{:.3f}".format))
    print(samples)
    if not options.centred:
        effects = samples["mu"][..., None] + samples["tau"][..., None] * samples["z"]
        print("effects of the schools:", np.round(effects.mean(axis=(0, 1)), 1))
    for path in samples.plot(options.out):
        print(f"picture: {path}")


if __name__ == "__main__":
    main()
