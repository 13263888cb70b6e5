"""Bayesian logistic regression on the Wisconsin breast cancer data, sampled by 64 chains of the No-U-Turn sampler.

    python examples/nuts/breast_cancer.py [--chains 64] [--warmup 300] [--draws 400]

The density below and the sampler in `pcbatch/nuts/` are written for one chain, warm-up included; pcbatch runs all of
them as one XLA program in which no chain waits for another's trajectory. Prints a table of the posterior and what it
cost, and saves pictures to `out/breast_cancer/`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from pcbatch import nuts  # before TensorFlow, which then says nothing of missing GPUs

# isort: split
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_breast_cancer


def log_density(coefficients: dict[str, tf.Tensor], data: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    """The posterior up to a constant: standard normal priors, y ~ Bernoulli(sigmoid(intercept + x . weights))."""
    x, y = data
    intercept, weights = coefficients["intercept"], coefficients["weights"]
    logits = intercept + tf.linalg.matvec(x, weights)
    prior = -0.5 * (intercept**2 + tf.reduce_sum(weights**2))
    return prior + tf.reduce_sum(y * logits - tf.math.softplus(logits))


INITIAL = {"intercept": np.zeros((), np.float32), "weights": np.zeros(30, np.float32)}


def load() -> tuple[tuple[np.ndarray, np.ndarray], list[str]]:
    """569 tumours: 30 measurements each, standardised, 1 for a benign one, and the names of the measurements."""
    bunch = load_breast_cancer()
    x = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    return (x.astype(np.float32), bunch.target.astype(np.float32)), list(bunch.feature_names)


def summarise(samples: nuts.Samples, features: list[str]) -> Any:
    """The table of the posterior, a row for each coefficient."""
    table = samples.summary()
    table.index = ["intercept", *features]
    return table


def main(arguments: list[str] | None = None) -> None:
    """Sample, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=64)
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/breast_cancer"))
    options = parser.parse_args(arguments)

    data, features = load()
    started = time.perf_counter()
    samples = nuts.sample(
        log_density,
        INITIAL,
        data=data,
        chains=options.chains,
        warmup=options.warmup,
        draws=options.draws,
        seed=options.seed,
    )
    seconds = time.perf_counter() - started

    table = summarise(samples, features)
    sizes = dict.fromkeys(["ess_bulk", "ess_tail"], "{:.0f}".format)
    print(f"{options.chains} chains, {options.warmup} trajectories of warm-up, {options.draws} draws\n")
    print(table.to_string(float_format="{:.3f}".format, formatters=sizes))
    print(f"\nworst R-hat {table['r_hat'].max():.3f}, least bulk ESS {table['ess_bulk'].min():.0f}")
    step_sizes = samples.sample_stats["step_size"][:, -1]
    print(f"step sizes {step_sizes.min():.3f} to {step_sizes.max():.3f}; ", end="")
    print(f"divergent trajectories: {samples.sample_stats['diverging'].sum()}")
    print(f"gradient evaluations: {samples.cost.gradients} needed, {samples.cost.rows} computed; utilisation")
    for label, value in samples.utilizations().items():
        print(f"  {label}: {value:.2f}")
    stats = samples.stats
    print(f"{seconds:.1f} seconds, of which {stats.trace_seconds + stats.compile_seconds:.1f} for compiling")
    for path in samples.plot(options.out):
        print(f"picture: {path}")


if __name__ == "__main__":
    main()
