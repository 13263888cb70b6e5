"""DyNet: the graphs of `benchmarks.trees`, and `backward`. Python 3.8 has to read this file."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.training.contestants.worker import Trained, serve
from benchmarks.trees.contestants import dynet_graphs
from benchmarks.trees.contestants.dynet_graphs import NETWORKS, Model, inside, start
from benchmarks.trees.contestants.worker import Job
from benchmarks.trees.networks import Arrays


def prepare(job: Job) -> Trained:
    """A step builds the graph of the batch, computes it and goes back through it."""
    dy, model = dynet_graphs.dy, Model(job.weights)
    graph = NETWORKS[job.network.cell](model)

    def results(batch: Arrays) -> Any:
        dy.renew_cg()
        return dy.concatenate_to_batch(graph(batch))

    def inference(batch: Arrays, aim: np.ndarray) -> Any:
        return results(batch).npvalue()

    def step(batch: Arrays, aim: np.ndarray) -> Any:
        for part in (model.words, *(each for parts in model.parts.values() for each in parts)):
            part.scale_gradient(0.0)
        vectors = aim[inside(batch["length"])] if job.network.cell == "tagger" else aim
        together = results(batch)
        distance = dy.squared_distance(together, dy.inputTensor(vectors.T, batched=True))
        loss = dy.sum_batches(distance) * (0.5 / len(aim))
        loss.value()
        loss.backward()

    def gradients(_: Any) -> Arrays:
        found = {"words": np.asarray(model.words.grad_as_array())}
        for name, parts in model.parts.items():
            found[name] = np.concatenate([each.grad_as_array() for each in parts]).T
        return {name: found[name] for name in job.weights}

    return Trained(inference, step, gradients)


if __name__ == "__main__":
    serve(prepare, start)
