"""TensorFlow Probability's autobatched NUTS, the first program-counter sampler; chains meet at gradients there, too.

Variants: "xla" and "graph" run its program-counter machine, "stackless" its local static batching, which runs eagerly.
Rows are counted by a variable to which each evaluation of the density adds its batch size, two rows of its type
inference included. It says how many leapfrogs a chain took, not of which trajectory, and its random numbers differ from
run to run.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from tensorflow_probability.python.experimental.mcmc import nuts_autobatching

from benchmarks.nuts.contestants.in_tensorflow import batched
from benchmarks.nuts.contestants.worker import Job, Outcome, Run, serve


def prepare(job: Job) -> Run:
    """All trajectories as one step of its kernel."""
    target, rows = job.target, tf.Variable(0, dtype=tf.int64)
    density = batched(target.family, tuple(map(tf.constant, target.data())))

    def counted(q: tf.Tensor) -> tf.Tensor:
        rows.assign_add(tf.cast(tf.shape(q)[0], tf.int64))
        return density(q)

    kernel = nuts_autobatching.NoUTurnSampler(
        counted,
        step_size=target.step_size,
        max_tree_depth=10,
        num_trajectories_per_step=job.trajectories,
        stackless=job.variant == "stackless",
        seed=1,
    )

    def everything(starts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        positions, results = kernel.one_step(starts, kernel.bootstrap_results(starts))
        return positions, results.leapfrogs_taken

    if job.variant != "stackless":
        everything = tf.function(everything, jit_compile=job.variant == "xla")
    starts = tf.constant(target.starts(job.chains))

    def run(seed: int, _: bool) -> Outcome:
        rows.assign(0)
        positions, leapfrogs = everything(starts)
        positions.numpy()
        return Outcome(np.asarray(leapfrogs, np.int64), int(rows))

    return run


if __name__ == "__main__":
    serve(prepare)
