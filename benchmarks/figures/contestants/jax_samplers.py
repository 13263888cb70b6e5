"""NumPyro's and BlackJAX's samplers, vectorised over chains on one device. A leaf of theirs is one leapfrog step.

Variants: "numpyro", "blackjax". Nobody counts their rows.
"""

from __future__ import annotations

import importlib
from typing import Any

import jax
import numpy as np

from benchmarks.figures.contestants.worker import Job, Outcome, Run, serve
from benchmarks.nuts.contestants import worker
from benchmarks.nuts.contestants.in_jax import DENSITIES


def prepare(job: Job) -> Run:
    """The trajectories of all chains as one compiled function."""
    target, trajectories = job.sizes.target, job.sizes.trajectories
    density, data, starts = DENSITIES[target.family], target.data(), target.starts(job.chains)
    peer = importlib.import_module(f"benchmarks.nuts.contestants.{job.variant}_sampler")
    its_job = worker.Job(target, job.chains, trajectories)

    @jax.jit
    def everything(key: Any, starts: Any, data: Any) -> tuple[Any, Any]:
        positions, leapfrogs = peer.transitions(lambda q: density(q, *data), its_job, key, starts)
        return positions[-1], leapfrogs

    def run(seed: int) -> Outcome:
        last, leapfrogs = jax.device_get(everything(jax.random.key(seed), starts, data))
        return Outcome(np.asarray(leapfrogs, np.int64).sum(), None, last[:, np.newaxis])

    return run


if __name__ == "__main__":
    serve(prepare)
