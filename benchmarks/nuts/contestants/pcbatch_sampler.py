"""`pcbatch.nuts.sample`. Rows are those that the machine counts (`Samples.cost`).

Variants: "xla" is the sampler as it comes, "auto" chooses between XLA's kernels and TensorFlow's in the first call;
warm calls repeat the choice.
"""

from __future__ import annotations

import warnings
from typing import Any

from benchmarks.nuts.contestants.in_tensorflow import ONE
from benchmarks.nuts.contestants.worker import Job, Outcome, Run, serve
from pcbatch import nuts


def prepare(job: Job) -> Run:
    """The sampler as a user calls it."""
    target, jit = job.target, "auto" if job.variant == "auto" else True
    starts, data = target.starts(job.chains), target.data() or None

    def run(seed: int, _: bool) -> Outcome:
        nonlocal jit
        samples: Any = nuts.sample(
            ONE[target.family],
            starts[0],
            data=data,
            initial_per_chain=starts,
            chains=job.chains,
            warmup=0,
            draws=job.trajectories,
            seed=seed,
            step_size=target.step_size,
            adapt=None,
            max_tree_depth=10,
            progress=False,
            jit=jit,
            chunk=job.trajectories,
        )
        jit = samples.settings.jit
        return Outcome(samples.sample_stats["n_steps"], samples.cost.rows, samples["x"])

    return run


if __name__ == "__main__":
    warnings.simplefilter("ignore", nuts.SamplerWarning)  # a few draws of the funnel prove nothing, and need not
    serve(prepare)
