"""Chains whose trajectories differ much in length: what lockstep wastes, and what is left of it here.

    python examples/nuts/trajectory_lengths.py [--chains 32] [--draws 50]

The density is a Gaussian of 100 dimensions whose neighbours have correlation 0.9. With a fixed step size its
trajectories have from 7 to 400 leapfrog steps, as chance will have it. A vectorised sampler in lockstep computes, for
each draw, as many gradients for every chain as the longest trajectory needs; here a chain goes on with its next draw,
and chains wait for each other at the end of all draws only.

Saves a picture to `out/trajectory_lengths/`, of each chain's first trajectories. To the left in lockstep, counted from
the very same trajectories: what is white is computed and thrown away. To the right as chains go on here; the titles
give the useful share of all rows, here as the machine has counted it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf

from pcbatch import nuts

SIZE, CORRELATION = 100, 0.9
COVARIANCE = CORRELATION ** np.abs(np.subtract.outer(np.arange(SIZE), np.arange(SIZE)))
STEP_SIZE = 0.184


def log_density(q: tf.Tensor, precision: tf.Tensor) -> tf.Tensor:
    """A centred Gaussian."""
    return -0.5 * tf.reduce_sum(q * tf.linalg.matvec(precision, q))


def sample(chains: int, draws: int, seed: int = 1) -> nuts.Samples:
    """Draws without a warm-up, from exact draws of the density on."""
    exact = np.random.default_rng(seed).multivariate_normal(np.zeros(SIZE), COVARIANCE, size=chains)
    return nuts.sample(
        log_density,
        np.zeros(SIZE, np.float32),
        data=np.linalg.inv(COVARIANCE).astype(np.float32),
        chains=chains,
        warmup=0,
        draws=draws,
        seed=seed,
        step_size=STEP_SIZE,
        initial_per_chain=exact,
    )


def lockstep_rows(steps: np.ndarray) -> int:
    """Gradients that a run in lockstep computes for these trajectories `[chains, draws]`."""
    return int(steps.max(axis=0).sum()) * len(steps)


def draw_picture(samples: nuts.Samples, path: Path, shown: int = 10) -> None:
    """A line for each chain and a stroke for each trajectory, as far as lockstep comes with `shown` draws."""
    from matplotlib.figure import Figure

    steps = samples.sample_stats["n_steps"]
    chains, draws = steps.shape
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    longest = np.broadcast_to(steps.max(axis=0), steps.shape)
    for axes, waits_for in ((left, longest), (right, steps)):
        ends = np.cumsum(waits_for, axis=1)
        for chain in range(chains):
            strokes = list(zip(ends[chain] - waits_for[chain], steps[chain], strict=True))
            axes.broken_barh(strokes, (chain, 0.9), color=(["tab:blue", "lightskyblue"] * draws)[:draws])
    shares = samples.utilizations()
    left.set(xlim=(0, longest[0, :shown].sum()), xlabel="gradients", ylabel="chain")
    left.set(title=f"in lockstep: {shares['lockstep']:.0%} of the rows of use")
    right.set(title=f"pcbatch: {shares['measured']:.0%} of the rows of use", xlabel="gradients")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Sample, count, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=32)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("out/trajectory_lengths"))
    options = parser.parse_args(arguments)
    samples = sample(options.chains, options.draws)
    steps = samples.sample_stats["n_steps"]
    print(f"leapfrog steps of a trajectory: {steps.min()} to {steps.max()}, mean {steps.mean():.1f}")
    print(f"gradients needed:                 {steps.sum():>9}")
    print(f"rows computed here:               {samples.cost.rows:>9}  utilisation {samples.cost.utilization:.2f}")
    rows = lockstep_rows(steps)
    print(f"rows computed in lockstep:        {rows:>9}  utilisation {steps.sum() / rows:.2f}")
    draw_picture(samples, options.out / "utilization.png")
    print(f"picture: {options.out / 'utilization.png'}")


if __name__ == "__main__":
    main()
