"""`pcbatch.nuts.sample`; the variant is what it calls `adapt`, and perhaps `metric`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.nuts.end_to_end.contestants.in_tensorflow import DENSITIES
from benchmarks.nuts.end_to_end.contestants.worker import Counts, Job, Run, serve
from pcbatch import nuts


def prepare(job: Job, data: dict[str, np.ndarray], **more: Any) -> Run:
    """The sampler as a user calls it, with `more` options."""
    model = job.model
    bijectors = dict.fromkeys(model.positive, nuts.positive) | dict.fromkeys(model.unit, nuts.interval(0, 1))

    def run(seed: int, starts: np.ndarray) -> tuple[np.ndarray, Counts]:
        points = model.constrained(starts)
        adapt, _, metric = job.variant.partition(" ")
        options: Any = {"chains": job.chains, "warmup": job.warmup, "draws": job.draws, "adapt": adapt}
        samples = nuts.sample(
            DENSITIES[job.posterior],
            {name: point[0] for name, point in points.items()},
            data=data,
            initial_per_chain=points,
            bijectors=bijectors,
            seed=seed,
            progress=False,
            metric=metric or "auto",
            **options,
            **more,
        )
        drawn = [samples[name] for name in model.sizes]
        gradients = int(samples.sample_stats["n_steps"].sum())
        counts = Counts(gradients, samples.cost.gradients - gradients)
        return np.concatenate([each.reshape(*each.shape[:2], -1) for each in drawn], axis=2), counts

    return run


if __name__ == "__main__":
    warnings.simplefilter("ignore", nuts.SamplerWarning)  # its draws are judged as all others are
    serve(prepare)
