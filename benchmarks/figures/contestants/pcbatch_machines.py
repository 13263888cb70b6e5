"""`pcbatch.nuts.sample` on one of its machines. Rows are those that the machine counts (`Samples.cost`).

Variants: "pc" is the sampler as it comes; "switch", "local" and "hybrid" are the machines of the paper.
"""

from __future__ import annotations

import warnings
from typing import Any

from benchmarks.figures.contestants.worker import Job, Outcome, Run, serve
from benchmarks.nuts.contestants.in_tensorflow import ONE
from pcbatch import nuts

OPTIONS: dict[str, dict[str, Any]] = {
    "pc": {},
    "switch": {"schedule": "switch"},
    "local": {"strategy": "local"},
    "hybrid": {"strategy": "hybrid"},
}


def prepare(job: Job) -> Run:
    """The sampler as a user calls it."""
    target, options = job.sizes.target, OPTIONS[job.variant]
    starts, data = target.starts(job.chains), target.data() or None

    def run(seed: int) -> Outcome:
        samples = nuts.sample(
            ONE[target.family],
            starts[0],
            data=data,
            initial_per_chain=starts,
            chains=job.chains,
            warmup=0,
            draws=job.sizes.trajectories,
            seed=seed,
            step_size=target.step_size,
            adapt=None,
            max_tree_depth=10,
            leapfrogs_per_leaf=job.sizes.leapfrogs,
            progress=False,
            chunk=job.sizes.trajectories,
            **options,
        )
        return Outcome(samples.sample_stats["n_steps"].sum(), samples.cost.rows, samples["x"][:, -1:])

    return run


if __name__ == "__main__":
    warnings.simplefilter("ignore", nuts.SamplerWarning)  # a few draws prove nothing, and need not
    serve(prepare)
