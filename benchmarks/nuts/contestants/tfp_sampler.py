"""`tfp.mcmc.NoUTurnSampler` under XLA: all chains wait for the longest trajectory.

Rows are counted by a variable of the program to which each evaluation of the density adds its batch size.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from benchmarks.nuts.contestants.in_tensorflow import batched
from benchmarks.nuts.contestants.worker import Job, Outcome, Run, serve


def prepare(job: Job) -> Run:
    """One compiled function that makes all trajectories."""
    target, rows = job.target, tf.Variable(0, dtype=tf.int64)
    density = batched(target.family, tuple(map(tf.constant, target.data())))

    def counted(q: tf.Tensor) -> tf.Tensor:
        rows.assign_add(job.chains)
        return density(q)

    kernel = tfp.mcmc.NoUTurnSampler(counted, step_size=target.step_size, max_tree_depth=10)

    @tf.function(jit_compile=True)
    def everything(starts: tf.Tensor, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tfp.mcmc.sample_chain(
            job.trajectories,
            starts,
            kernel=kernel,
            num_burnin_steps=0,
            trace_fn=lambda _, results: results.leapfrogs_taken,
            seed=seed,
        )

    starts = tf.constant(target.starts(job.chains))

    def run(seed: int, _: bool) -> Outcome:
        rows.assign(0)
        positions, leapfrogs = everything(starts, tf.constant([seed, 0]))
        positions.numpy()
        return Outcome(np.asarray(leapfrogs, np.int64).T, int(rows))

    return run


if __name__ == "__main__":
    serve(prepare)
