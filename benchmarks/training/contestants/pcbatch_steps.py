"""pcbatch: the networks of `benchmarks.trees`, a tape around the batch. The variant is a name of `OPTIONS`.

A step is one `tf.function`, as that by hand is: of small trees it takes 0.9 of the time that it takes line by line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.training.contestants.worker import Trained, serve
from benchmarks.trees.contestants import one_thread
from benchmarks.trees.contestants.pcbatch_batched import HEADS, NETWORKS
from benchmarks.trees.contestants.worker import Job
from benchmarks.trees.networks import Arrays

OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    "forks": {"fork": True},
    "replay": {"tape": "replay"},
    "lockstep": {"form": "lockstep"},
    "heads": {},
}
_options: dict[str, Any] = {}
_networks = {**NETWORKS}


def start(variant: str) -> None:
    """The options that all functions are to have, and whose heads are batched by hand."""
    _options.update(OPTIONS[variant])
    _networks.update(HEADS if variant == "heads" else {})


def prepare(job: Job) -> Trained:
    """Steps of the batched function."""
    weights = {name: tf.Variable(each) for name, each in job.weights.items()}
    function = _networks[job.network.cell](weights).options(**_options)

    def inference(batch: Arrays, aim: np.ndarray) -> Any:
        return function(*batch.values()).numpy()

    def taped(batch: Arrays, aim: np.ndarray) -> Any:
        with tf.GradientTape():
            return function(*batch.values()).numpy()

    @tf.function
    def step(batch: dict[str, tf.Tensor], aim: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.nn.l2_loss(function(*batch.values()) - aim) / aim.shape[0]
        return tape.gradient(loss, list(weights.values()))

    def gradients(found: Any) -> Arrays:
        return {name: tf.convert_to_tensor(each).numpy() for name, each in zip(weights, found, strict=True)}

    return Trained(inference, step, gradients, taped)


if __name__ == "__main__":
    one_thread.keep()
    serve(prepare, start)
