"""No sampler at all: leapfrog steps of all chains in a loop, what gradients cost where nothing decides anything.

Log densities are computed with them and added up, for a sampler needs both. Every row is of use. The variants "xla" and
"graph" say whose kernels compute them.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from benchmarks.nuts.contestants.in_tensorflow import batched, value_and_gradient
from benchmarks.nuts.contestants.worker import Job, Outcome, Run, serve

LEAPFROGS = 7
"""In a trajectory: three doublings."""


def prepare(job: Job) -> Run:
    """One compiled loop."""
    target = job.target
    density = batched(target.family, tuple(map(tf.constant, target.data())))
    steps = job.trajectories * LEAPFROGS

    @tf.function(jit_compile=job.variant == "xla")
    def everything(q: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        values, g = value_and_gradient(density, q)

        def leapfrog(i: tf.Tensor, *here: tf.Tensor) -> tuple[tf.Tensor, ...]:
            q, p, g, values = here
            p = p + 0.5 * target.step_size * g
            q = q + target.step_size * p
            value, g = value_and_gradient(density, q)
            return i + 1, q, p + 0.5 * target.step_size * g, g, values + value

        _, q, *_, values = tf.while_loop(lambda i, *_: i < steps, leapfrog, (tf.constant(0), q, p, g, values))
        return q + values[:, tf.newaxis]

    starts = tf.constant(target.starts(job.chains))

    def run(seed: int, _: bool) -> Outcome:
        everything(starts, tf.random.stateless_normal(starts.shape, [seed, 0])).numpy()
        return Outcome(np.full((job.chains, job.trajectories), LEAPFROGS), job.chains * steps)

    return run


if __name__ == "__main__":
    serve(prepare)
