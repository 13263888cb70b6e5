"""TensorFlow Probability's samplers. Rows are counted by a variable to which each density adds its own.

Variants: "sampler" is `tfp.mcmc.NoUTurnSampler` under XLA, whose chains wait for the longest trajectory; "machine" is
the paper's own program-counter machine under XLA, "stackless" its own local static batching, which runs eagerly.
The latter two give the last draw of each chain only, and their random numbers differ from run to run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tensorflow_probability.python.experimental.mcmc import nuts_autobatching

from benchmarks.figures.contestants.worker import Job, Outcome, Run, serve
from benchmarks.nuts.contestants.in_tensorflow import batched

Transitions = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
"""`(starts, seed) -> (last draws [chains, size], leapfrogs)`"""


def iterative(job: Job, density: Callable[[Any], Any]) -> Transitions:
    """The sampler without recursion, all trajectories in one compiled loop."""
    kernel = tfp.mcmc.NoUTurnSampler(
        density, step_size=job.sizes.target.step_size, max_tree_depth=10, unrolled_leapfrog_steps=job.sizes.leapfrogs
    )

    @tf.function(jit_compile=True)
    def transitions(starts: tf.Tensor, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        draws, leapfrogs = tfp.mcmc.sample_chain(
            job.sizes.trajectories,
            starts,
            kernel=kernel,
            num_burnin_steps=0,
            trace_fn=lambda _, results: results.leapfrogs_taken,
            seed=seed,
        )
        return draws[-1], leapfrogs

    return transitions


def autobatched(job: Job, density: Callable[[Any], Any]) -> Transitions:
    """All trajectories as one step of the recursive sampler's kernel."""
    kernel = nuts_autobatching.NoUTurnSampler(
        density,
        step_size=job.sizes.target.step_size,
        max_tree_depth=10,
        unrolled_leapfrog_steps=job.sizes.leapfrogs,
        num_trajectories_per_step=job.sizes.trajectories,
        stackless=job.variant == "stackless",
        seed=1,
    )

    def transitions(starts: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        draws, results = kernel.one_step(starts, kernel.bootstrap_results(starts))
        return draws, results.leapfrogs_taken

    return transitions if job.variant == "stackless" else tf.function(transitions, jit_compile=True)


def prepare(job: Job) -> Run:
    """The trajectories of all chains as one call."""
    rows = tf.Variable(0, dtype=tf.int64)
    density = batched(job.sizes.target.family, tuple(map(tf.constant, job.sizes.target.data())))

    def counted(q: tf.Tensor) -> tf.Tensor:
        rows.assign_add(tf.size(q, tf.int64) // job.sizes.target.size)  # type inference comes without an axis of chains
        return density(q)

    transitions = (iterative if job.variant == "sampler" else autobatched)(job, counted)
    starts = tf.constant(job.sizes.target.starts(job.chains))

    def run(seed: int) -> Outcome:
        rows.assign(0)
        draws, leapfrogs = transitions(starts, tf.constant([seed, 0]))
        return Outcome(np.asarray(leapfrogs, np.int64).sum(), int(rows), draws.numpy()[:, np.newaxis])

    return run


if __name__ == "__main__":
    serve(prepare)
