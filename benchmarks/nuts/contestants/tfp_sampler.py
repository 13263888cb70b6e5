"""`tfp.mcmc.NoUTurnSampler` under XLA: all chains wait for the longest trajectory.

The variant "cores" runs the chains in one part for each core, in threads, as pcbatch does. Rows are counted in a second
run of the same seed, by a variable of the program to which each evaluation of the density adds its batch size; parts
that shared it in the timed runs would wait for each other.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from benchmarks.environments import CORES
from benchmarks.nuts.contestants.in_tensorflow import batched
from benchmarks.nuts.contestants.parts import joined, parted
from benchmarks.nuts.contestants.worker import Job, Outcome, Run, serve


def prepare(job: Job) -> Run:
    """One compiled function that makes all trajectories of a part."""
    target, rows = job.target, tf.Variable(0, dtype=tf.int64)
    density = batched(target.family, tuple(map(tf.constant, target.data())))
    starts = tf.constant(parted(target.starts(job.chains), CORES if job.variant == "cores" else 1))

    def counted(q: tf.Tensor) -> tf.Tensor:
        rows.assign_add(starts.shape[1])
        return density(q)

    @tf.function(jit_compile=True)
    def everything(starts: tf.Tensor, seed: tf.Tensor, counts: bool) -> tuple[tf.Tensor, tf.Tensor]:
        return tfp.mcmc.sample_chain(
            job.trajectories,
            starts,
            kernel=tfp.mcmc.NoUTurnSampler(
                counted if counts else density, step_size=target.step_size, max_tree_depth=10
            ),
            num_burnin_steps=0,
            trace_fn=lambda _, results: results.leapfrogs_taken,
            seed=seed,
        )

    def part(number: int, seed: int, counts: bool) -> tuple[np.ndarray, np.ndarray]:
        positions, leapfrogs = everything(starts[number], tf.constant([seed, number]), counts)
        return positions.numpy(), leapfrogs.numpy()

    threads = ThreadPoolExecutor(len(starts))

    def run(seed: int, counts: bool) -> Outcome:
        rows.assign(0)
        numbers = range(len(starts))
        if counts or len(starts) == 1:
            found = [part(number, seed, counts) for number in numbers]
        else:
            found = list(threads.map(lambda number: part(number, seed, counts), numbers))
        positions, leapfrogs = (joined(np.stack(each).swapaxes(1, 2), job.chains) for each in zip(*found, strict=True))
        return Outcome(np.asarray(leapfrogs, np.int64), int(rows) if counts else None, positions)

    return run


if __name__ == "__main__":
    serve(prepare)
