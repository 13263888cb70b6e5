"""No batching: the same sampler as plain Python, run eagerly by TensorFlow, one chain after another (`f.single`)."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from benchmarks.figures.contestants.worker import Job, Outcome, Run, serve
from benchmarks.figures.sampler import Chains


def prepare(job: Job) -> Run:
    """The chains, one after another; nothing is compiled."""
    chains = Chains(job.sizes, job.chains)

    def run(seed: int) -> Outcome:
        arguments = chains.arguments(seed)
        gradients, draws = 0, []
        for chain in range(job.chains):
            one = [tf.nest.map_structure(lambda array, i=chain: array[i], each) for each in arguments.by_chain]
            *_, positions, statistics = chains.program.single(*one, *arguments.shared)
            gradients += int(chains.gradients(statistics[np.newaxis]).sum())
            draws.append(positions[-1:].numpy())
        return Outcome(gradients, gradients, np.stack(draws))

    return run


if __name__ == "__main__":
    serve(prepare)
