"""Chains whose trajectories differ much in length: what lockstep wastes, and what is left of it here.

    python examples/nuts/trajectory_lengths.py [--chains 32] [--draws 100]

The density is a Gaussian of 50 dimensions with standard deviations from 0.1 to 1, and every chain has a step size of
its own, as after a warm-up of its own, only further apart: from 0.02 to 0.16. A vectorised sampler in lockstep
computes, for each draw, as many gradients for every chain as the longest trajectory needs; here a chain goes on with
its next draw, and draws from different chains are at different places when the machine stops.

Saves a picture to `out/trajectory_lengths/`. To the left the lockstep run, its rows counted from the very same
trajectories: what is white is computed and thrown away. To the right, on the same scale, each chain's gradients and a
line where the machine stopped: how often it computed the gradient for all chains.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf

from pcbatch import nuts

SCALES = np.geomspace(0.1, 1.0, 50)


def log_density(q: tf.Tensor, scales: tf.Tensor) -> tf.Tensor:
    """Independent normal numbers."""
    return -0.5 * tf.reduce_sum((q / scales) ** 2)


def sample(chains: int, draws: int, seed: int = 1) -> nuts.Samples:
    """Draws with step sizes from 0.02 to 0.16, no warm-up, from exact draws of the density."""
    return nuts.sample(
        log_density,
        np.zeros(50),
        data=SCALES,
        chains=chains,
        warmup=0,
        draws=draws,
        seed=seed,
        step_size=np.geomspace(0.02, 0.16, chains),
        initial_per_chain=np.random.default_rng(seed).normal(size=(chains, 50)) * SCALES,
    )


def lockstep_rows(steps: np.ndarray) -> int:
    """Gradients that a run in lockstep computes for these trajectories `[chains, draws]`."""
    return int(steps.max(axis=0).sum()) * len(steps)


def draw_picture(samples: nuts.Samples, path: Path) -> None:
    """Both runs, a line for each chain, a stroke for each trajectory."""
    from matplotlib.figure import Figure

    steps = samples.sample_stats["n_steps"]
    chains, draws = steps.shape
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    together = np.concatenate([[0], np.cumsum(steps.max(axis=0))[:-1]])
    alone = np.concatenate([np.zeros((chains, 1), int), np.cumsum(steps, axis=1)[:, :-1]], axis=1)
    colours = ["tab:blue", "lightskyblue"] * draws
    for chain in range(chains):
        left.broken_barh(list(zip(together, steps[chain], strict=True)), (chain, 0.9), color=colours[:draws])
        right.broken_barh(list(zip(alone[chain], steps[chain], strict=True)), (chain, 0.9), color=colours[:draws])
    right.axvline(samples.cost.rows / chains, color="black", linewidth=1)
    shares = samples.utilizations()
    left.set(
        title=f"in lockstep: {shares['lockstep']:.0%} of use", ylabel="chain", xlabel="gradients computed by a lane"
    )
    right.set(title=f"pcbatch: {shares['measured']:.0%} of use", xlabel="gradients computed by a lane")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> None:
    """Sample, count, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=32)
    parser.add_argument("--draws", type=int, default=100)
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
