"""Bayesian logistic regression on the Wisconsin breast cancer data, sampled by 64 chains of the No-U-Turn sampler.

    python examples/nuts/breast_cancer.py [--chains 64] [--draws 400]

The density below and the sampler in `pcbatch/nuts/algorithm.py` are written for one chain; pcbatch runs all of them as
one XLA program in which no chain waits for another's trajectory. Prints a table of the posterior and what it cost, and
saves a picture to `out/breast_cancer.png`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import arviz
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_breast_cancer

import pcbatch.nuts
from pcbatch.nuts import Samples


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


def last_positions(samples: Samples) -> dict[str, np.ndarray]:
    """Where the chains stand."""
    return {name: draws[:, -1] for name, draws in samples.items()}


def find_step_size(data: Any, chains: int, target: float = 0.8) -> tuple[float, dict[str, np.ndarray]]:
    """The largest trial step size with which a few trajectories accept at least `target`, and where the chains stand.

    Steps grow by the square root of two; chains go on from trial to trial, so that the search is their warm-up as well.
    """
    print(f"{'step size':>10} {'acceptance':>11} {'leapfrogs':>10} {'diverging':>10}")
    positions, found = None, None
    for trial, step_size in enumerate(0.04 * 2 ** (np.arange(10) / 2)):
        samples = pcbatch.nuts.sample(
            log_density,
            INITIAL,
            data=data,
            chains=chains,
            draws=20,
            step_size=step_size,
            seed=1000 + trial,
            initial_per_chain=positions,
        )
        late = {name: values[:, 10:] for name, values in samples.sample_stats.items()}  # the first ten forget the start
        acceptance = late["acceptance_rate"].mean()
        print(f"{step_size:10.3f} {acceptance:11.2f} {late['n_steps'].mean():10.1f} {late['diverging'].sum():10d}")
        if acceptance < target:
            break
        positions, found = last_positions(samples), step_size
    if positions is None or found is None:
        raise SystemExit("no trial step size was accepted often enough")
    return float(found), positions


def summarise(samples: Samples, features: list[str]) -> Any:
    """ArviZ's table of the posterior, a row for each coefficient."""
    table = arviz.summary(samples.to_arviz(), var_names=["intercept", "weights"], round_to="none")
    table.index = ["intercept", *features]
    return table[["mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat"]]


def utilisations(samples: Samples) -> dict[str, float]:
    """Useful share of all gradients computed: here, and for samplers whose chains wait for each other."""
    steps = samples.sample_stats["n_steps"]
    return {
        "all chains wait for\nthe longest trajectory": steps.sum() / (steps.max(axis=0).sum() * len(steps)),
        "pcbatch\n(measured)": samples.cost.utilization,
        "chains wait\nat the end only": steps.sum() / (steps.sum(axis=1).max() * len(steps)),
    }


def draw_picture(samples: Samples, path: Path) -> None:
    """Save traces of one coefficient and the utilisation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4), width_ratios=(3, 2), layout="constrained")
    left.plot(samples["intercept"][:8].T, linewidth=0.5)
    left.set(xlabel="draw", ylabel="intercept", title="8 of the chains")
    bars = right.bar(*zip(*utilisations(samples).items(), strict=True), color=["silver", "tab:blue", "silver"])
    right.bar_label(bars, fmt="%.2f")
    right.set(ylim=(0, 1.1), title="useful share of gradients computed")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Search a step size, sample, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=64)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()

    data, features = load()
    started = time.perf_counter()
    step_size, positions = find_step_size(data, options.chains)
    searched = time.perf_counter()
    samples = pcbatch.nuts.sample(
        log_density,
        INITIAL,
        data=data,
        chains=options.chains,
        draws=options.draws,
        step_size=step_size,
        seed=options.seed,
        initial_per_chain=positions,
    )
    sampled = time.perf_counter()

    table = summarise(samples, features)
    print(f"\n{options.chains} chains of {options.draws} draws, step size {step_size:.3f}\n")
    print(
        table.to_string(
            float_format="{:.3f}".format, formatters=dict.fromkeys(["ess_bulk", "ess_tail"], "{:.0f}".format)
        )
    )
    print(f"\nworst R-hat {table['r_hat'].max():.3f}, least bulk ESS {table['ess_bulk'].min():.0f}")
    print(f"divergent trajectories: {samples.sample_stats['diverging'].sum()}")
    print(f"gradient evaluations: {samples.cost.gradients} needed, {samples.cost.rows} computed: ", end="")
    print(f"utilisation {samples.cost.utilization:.2f}")
    for label, value in utilisations(samples).items():
        print(f"  {label.replace(chr(10), ' ')}: {value:.2f}")
    print(f"seconds: {searched - started:.1f} for compiling and the step size, {sampled - searched:.1f} for sampling")
    picture = options.out / "breast_cancer.png"
    draw_picture(samples, picture)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
